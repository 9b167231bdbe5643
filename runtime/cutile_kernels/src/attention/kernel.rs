//! Device code of attention with an online softmax.
//!
//! q, out: (batch, heads, queries, D); k, v: (batch, key heads, keys, D), where key heads divides
//! heads. `MASK` 1: a (batch, heads, queries, keys) mask is added. A query without a key
//! gives NaN, as 0/0 does. Powers are of 2: the scale holds log2(e).

#[cutile::module]
pub mod attention_module {
    use cutile::core::*;

    unsafe fn read<E: ElementType, const R: i32, const C: i32>(
        x: &Tensor<E, { [-1, -1, -1, -1] }>,
        index: [i32; 4],
    ) -> Tile<E, { [R, C] }> {
        let part: Partition<E, { [1, 1, R, C] }> = x.partition(const_shape![1, 1, R, C]);
        let block: Tile<E, { [1, 1, R, C] }> = load_view_tko(
            &part,
            index,
            ordering::Weak,
            scope::TileBlock,
            None,
            tma::Enabled,
        );
        block.reshape(const_shape![R, C])
    }

    unsafe fn read_turned<E: ElementType, const R: i32, const C: i32>(
        x: &Tensor<E, { [-1, -1, -1, -1] }>,
        index: [i32; 4],
    ) -> Tile<E, { [R, C] }> {
        let part: Partition<E, { [1, 1, R, C] }> =
            x.partition_permuted(const_shape![1, 1, R, C], const_array![0, 1, 3, 2]);
        let block: Tile<E, { [1, 1, R, C] }> = load_view_tko(
            &part,
            index,
            ordering::Weak,
            scope::TileBlock,
            None,
            tma::Enabled,
        );
        block.reshape(const_shape![R, C])
    }

    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn attention<
        E: ElementType,
        M: ElementType,
        const BM: i32,
        const BN: i32,
        const D: i32,
        const CAUSAL: i32,
        const MASK: i32,
    >(
        out: &Tensor<E, { [-1, -1, -1, -1] }>,
        q: &Tensor<E, { [-1, -1, -1, -1] }>,
        k: &Tensor<E, { [-1, -1, -1, -1] }>,
        v: &Tensor<E, { [-1, -1, -1, -1] }>,
        mask: &Tensor<M, { [-1, -1, -1, -1] }>,
        scale_log2: f32,
        heads: i32,
        heads_per_key: i32,
        keys: i32,
        query_tiles: i32,
        keep_mask_batch: i32,
        keep_mask_head: i32,
    ) {
        let (from_last, at, _z) = get_tile_block_id();
        // Causal rows at the end have the most keys: they start first.
        let row: i32 = query_tiles - 1i32 - from_last;
        let batch: i32 = at / heads;
        let head: i32 = at % heads;
        let key_head: i32 = head / heads_per_key;
        let q_tile: Tile<E, { [BM, D] }> = unsafe { read::<E, BM, D>(q, [batch, head, row, 0i32]) };
        let mut maximum: Tile<f32, { [BM, 1] }> = constant(f32::NEG_INFINITY, const_shape![BM, 1]);
        let mut sum: Tile<f32, { [BM, 1] }> = constant(0.0f32, const_shape![BM, 1]);
        let mut total: Tile<f32, { [BM, D] }> = constant(0.0f32, const_shape![BM, D]);
        let lowest: Tile<f32, { [BM, BN] }> = constant(f32::NEG_INFINITY, const_shape![BM, BN]);
        let lowest_1: Tile<f32, { [BM, 1] }> = constant(f32::NEG_INFINITY, const_shape![BM, 1]);
        let zero_1: Tile<f32, { [BM, 1] }> = constant(0.0f32, const_shape![BM, 1]);
        let scale: Tile<f32, { [BM, BN] }> = broadcast_scalar(scale_log2, const_shape![BM, BN]);
        let row_ids: Tile<i32, { [BM] }> =
            iota(const_shape![BM]) + broadcast_scalar(row * BM, const_shape![BM]);
        let row_column: Tile<i32, { [BM, 1] }> = row_ids.reshape(const_shape![BM, 1]);
        let rows: Tile<i32, { [BM, BN] }> = row_column.broadcast(const_shape![BM, BN]);
        let past: i32 = row * BM + BM;
        let end: i32 = if CAUSAL == 1i32 && past < keys {
            past
        } else {
            keys
        };
        let steps: i32 = (end + BN - 1i32) / BN;
        for step in 0i32..steps {
            let k_tile: Tile<E, { [D, BN] }> =
                unsafe { read_turned::<E, D, BN>(k, [batch, key_head, 0i32, step]) };
            let none: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            let product: Tile<f32, { [BM, BN] }> = mmaf(q_tile, k_tile, none);
            let mut score: Tile<f32, { [BM, BN] }> = product * scale;
            let column_ids: Tile<i32, { [BN] }> =
                iota(const_shape![BN]) + broadcast_scalar(step * BN, const_shape![BN]);
            let column_row: Tile<i32, { [1, BN] }> = column_ids.reshape(const_shape![1, BN]);
            if MASK == 1i32 {
                let given: Tile<M, { [BM, BN] }> = unsafe {
                    read::<M, BM, BN>(
                        mask,
                        [batch * keep_mask_batch, head * keep_mask_head, row, step],
                    )
                };
                let wide: Tile<f32, { [BM, BN] }> = convert_tile(given);
                let log2e: Tile<f32, { [BM, BN] }> = constant(1.442695f32, const_shape![BM, BN]);
                score = score + wide * log2e;
            } else {
                score = score;
            }
            // Only tiles on an edge need the comparisons.
            if (step + 1i32) * BN > keys {
                let columns: Tile<i32, { [BM, BN] }> = column_row.broadcast(const_shape![BM, BN]);
                let last: Tile<i32, { [BM, BN] }> = broadcast_scalar(keys, const_shape![BM, BN]);
                score = select(lt_tile(columns, last), score, lowest);
            } else {
                score = score;
            }
            if CAUSAL == 1i32 {
                if (step + 1i32) * BN > row * BM + 1i32 {
                    let columns: Tile<i32, { [BM, BN] }> =
                        column_row.broadcast(const_shape![BM, BN]);
                    score = select(le_tile(columns, rows), score, lowest);
                } else {
                    score = score;
                }
            } else {
                score = score;
            }
            let flat: Tile<f32, { [BM] }> = reduce_max(score, 1i32);
            let higher: Tile<f32, { [BM, 1] }> =
                max_tile(maximum, flat.reshape(const_shape![BM, 1]));
            let is_lowest: Tile<bool, { [BM, 1] }> = eq_tile(higher, lowest_1);
            let base: Tile<f32, { [BM, 1] }> = select(is_lowest, zero_1, higher);
            let powers: Tile<f32, { [BM, BN] }> =
                exp2(score - base.broadcast(const_shape![BM, BN]), ftz::Enabled);
            let rescale: Tile<f32, { [BM, 1] }> = exp2(maximum - base, ftz::Enabled);
            let near: Tile<f32, { [BM] }> = reduce_sum(powers, 1i32);
            let near_column: Tile<f32, { [BM, 1] }> = near.reshape(const_shape![BM, 1]);
            sum = sum * rescale + near_column;
            let v_tile: Tile<E, { [BN, D] }> =
                unsafe { read::<E, BN, D>(v, [batch, key_head, step, 0i32]) };
            let narrow: Tile<E, { [BM, BN] }> = convert_tile(powers);
            total = total * rescale.broadcast(const_shape![BM, D]);
            total = mmaf(narrow, v_tile, total);
            maximum = higher;
        }
        let one: Tile<f32, { [BM, 1] }> = constant(1.0f32, const_shape![BM, 1]);
        let inverse: Tile<f32, { [BM, 1] }> = one / sum;
        let result: Tile<f32, { [BM, D] }> = total * inverse.broadcast(const_shape![BM, D]);
        let flat_out: Tile<E, { [BM, D] }> = convert_tile(result);
        let block: Tile<E, { [1, 1, BM, D] }> = flat_out.reshape(const_shape![1, 1, BM, D]);
        let mut part: PartitionMut<E, { [1, 1, BM, D] }> =
            unsafe { out.partition_full_mut(const_shape![1, 1, BM, D]) };
        unsafe {
            store_view_tko_mut(
                &mut part,
                block,
                [batch, head, row, 0i32],
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
        }
    }
}
