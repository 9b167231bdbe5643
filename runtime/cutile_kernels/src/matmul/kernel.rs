//! Device code of c = activation(alpha * a @ b + bias) over two batch dimensions.
//!
//! `A_T` and `B_T` say that an operand's view has its last two dimensions swapped, as the
//! contiguous one must be the last. `c` is (batch, batch, m, n). The products' sums are float32.

#[cutile::module]
pub mod matmul_module {
    use cutile::core::*;

    unsafe fn read<E: ElementType, const R: i32, const C: i32, const SWAPPED: i32>(
        x: &Tensor<E, { [-1, -1, -1, -1] }>,
        index: [i32; 4],
    ) -> Tile<E, { [R, C] }> {
        let tile: Tile<E, { [R, C] }> = if SWAPPED == 1i32 {
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
        } else {
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
        };
        tile
    }

    unsafe fn write<O: ElementType, const R: i32, const C: i32>(
        y: &Tensor<O, { [-1, -1, -1, -1] }>,
        tile: Tile<O, { [R, C] }>,
        index: [i32; 4],
    ) {
        let block: Tile<O, { [1, 1, R, C] }> = tile.reshape(const_shape![1, 1, R, C]);
        let mut part: PartitionMut<O, { [1, 1, R, C] }> =
            unsafe { y.partition_full_mut(const_shape![1, 1, R, C]) };
        unsafe {
            store_view_tko_mut(
                &mut part,
                block,
                index,
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
        }
    }

    /// Batch, row tile and column tile of a tile's number. Rows go in groups, so that tiles in
    /// flight together share operands in the L2 cache.
    fn place(tile: i32, row_tiles: i32, column_tiles: i32, group: i32) -> (i32, i32, i32) {
        let per_batch: i32 = row_tiles * column_tiles;
        let batch: i32 = tile / per_batch;
        let near: i32 = tile % per_batch;
        let per_group: i32 = group * column_tiles;
        let first: i32 = near / per_group * group;
        let left: i32 = row_tiles - first;
        let rows: i32 = if left < group { left } else { group };
        let within: i32 = near % per_group;
        (batch, first + within % rows, within / rows)
    }

    /// 0 none, 1 relu, 2 gelu, 3 gelu by tanh, 4 silu.
    fn activate<const R: i32, const C: i32, const ACTIVATION: i32>(
        x: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let one: Tile<f32, { [R, C] }> = constant(1.0f32, const_shape![R, C]);
        let half: Tile<f32, { [R, C] }> = constant(0.5f32, const_shape![R, C]);
        let y: Tile<f32, { [R, C] }> = if ACTIVATION == 1i32 {
            let zero: Tile<f32, { [R, C] }> = constant(0.0f32, const_shape![R, C]);
            maxf(x, zero, nan::Enabled, ftz::Disabled)
        } else if ACTIVATION == 2i32 {
            half * x * (one + error_function::<R, C>(x))
        } else if ACTIVATION == 3i32 {
            let cubic: Tile<f32, { [R, C] }> = constant(0.044715f32, const_shape![R, C]);
            let scale: Tile<f32, { [R, C] }> = constant(0.7978846f32, const_shape![R, C]);
            half * x * (one + tanh(scale * (x + cubic * x * x * x)))
        } else if ACTIVATION == 4i32 {
            x / (one + exp(negf(x)))
        } else {
            x
        };
        y
    }

    /// erf(x / sqrt(2)), to 1.5e-7 (Abramowitz and Stegun 7.1.26).
    fn error_function<const R: i32, const C: i32>(
        x: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let one: Tile<f32, { [R, C] }> = constant(1.0f32, const_shape![R, C]);
        let zero: Tile<f32, { [R, C] }> = constant(0.0f32, const_shape![R, C]);
        let root: Tile<f32, { [R, C] }> = constant(0.70710678f32, const_shape![R, C]);
        let p: Tile<f32, { [R, C] }> = constant(0.3275911f32, const_shape![R, C]);
        let a1: Tile<f32, { [R, C] }> = constant(0.254829592f32, const_shape![R, C]);
        let a2: Tile<f32, { [R, C] }> = constant(-0.284496736f32, const_shape![R, C]);
        let a3: Tile<f32, { [R, C] }> = constant(1.421413741f32, const_shape![R, C]);
        let a4: Tile<f32, { [R, C] }> = constant(-1.453152027f32, const_shape![R, C]);
        let a5: Tile<f32, { [R, C] }> = constant(1.061405429f32, const_shape![R, C]);
        let size: Tile<f32, { [R, C] }> = absf(x) * root;
        let t: Tile<f32, { [R, C] }> = one / (one + p * size);
        let series: Tile<f32, { [R, C] }> = ((((a5 * t + a4) * t + a3) * t + a2) * t + a1) * t;
        let positive: Tile<f32, { [R, C] }> = one - series * exp(negf(size * size));
        select(lt_tile(x, zero), negf(positive), positive)
    }

    unsafe fn finish<
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const BIAS: i32,
        const ACTIVATION: i32,
    >(
        c: &Tensor<O, { [-1, -1, -1, -1] }>,
        bias: &Tensor<O, { [-1] }>,
        sum: Tile<f32, { [BM, BN] }>,
        alpha: f32,
        index: [i32; 4],
    ) {
        let scaled: Tile<f32, { [BM, BN] }> = sum * broadcast_scalar(alpha, const_shape![BM, BN]);
        let y: Tile<f32, { [BM, BN] }> = if BIAS == 1i32 {
            let part: Partition<O, { [BN] }> = bias.partition(const_shape![BN]);
            let narrow: Tile<O, { [BN] }> = load_view_tko(
                &part,
                [index[3]],
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Disabled,
            );
            let row: Tile<f32, { [BN] }> = convert_tile(narrow);
            let wide: Tile<f32, { [1, BN] }> = row.reshape(const_shape![1, BN]);
            scaled + wide.broadcast(const_shape![BM, BN])
        } else {
            scaled
        };
        let active: Tile<f32, { [BM, BN] }> = activate::<BM, BN, ACTIVATION>(y);
        let out: Tile<O, { [BM, BN] }> = convert_tile(active);
        unsafe { write::<O, BM, BN>(c, out, index) };
    }

    /// Blocks stride over the tiles of c. `keep_*` is 0 where an operand is the same for every
    /// index of a batch dimension, else 1; `batches` is the size of c's second one.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn matmul<
        E: ElementType,
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const BK: i32,
        const GROUP: i32,
        const A_T: i32,
        const B_T: i32,
        const BIAS: i32,
        const ACTIVATION: i32,
        const PERSISTENT: i32,
    >(
        c: &Tensor<O, { [-1, -1, -1, -1] }>,
        a: &Tensor<E, { [-1, -1, -1, -1] }>,
        b: &Tensor<E, { [-1, -1, -1, -1] }>,
        bias: &Tensor<O, { [-1] }>,
        alpha: f32,
        batches: i32,
        row_tiles: i32,
        column_tiles: i32,
        steps: i32,
        tiles: i32,
        keep_a_outer: i32,
        keep_a_inner: i32,
        keep_b_outer: i32,
        keep_b_inner: i32,
    ) {
        let first: i32 = get_tile_block_id().0;
        if PERSISTENT == 1i32 {
            let stride: i32 = get_num_tile_blocks().0;
            for tile in (first..tiles).step_by(stride as usize) {
                let (batch, row, column) = place(tile, row_tiles, column_tiles, GROUP);
                let outer: i32 = batch / batches;
                let inner: i32 = batch % batches;
                let mut sum: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
                for step in 0i32..steps {
                    let a_tile: Tile<E, { [BM, BK] }> = unsafe {
                        read::<E, BM, BK, A_T>(
                            a,
                            [outer * keep_a_outer, inner * keep_a_inner, row, step],
                        )
                    };
                    let b_tile: Tile<E, { [BK, BN] }> = unsafe {
                        read::<E, BK, BN, B_T>(
                            b,
                            [outer * keep_b_outer, inner * keep_b_inner, step, column],
                        )
                    };
                    sum = mmaf(a_tile, b_tile, sum);
                }
                unsafe {
                    finish::<O, BM, BN, BIAS, ACTIVATION>(
                        c,
                        bias,
                        sum,
                        alpha,
                        [outer, inner, row, column],
                    )
                };
            }
        } else {
            let (batch, row, column) = place(first, row_tiles, column_tiles, GROUP);
            let outer: i32 = batch / batches;
            let inner: i32 = batch % batches;
            let mut sum: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            for step in 0i32..steps {
                let a_tile: Tile<E, { [BM, BK] }> = unsafe {
                    read::<E, BM, BK, A_T>(
                        a,
                        [outer * keep_a_outer, inner * keep_a_inner, row, step],
                    )
                };
                let b_tile: Tile<E, { [BK, BN] }> = unsafe {
                    read::<E, BK, BN, B_T>(
                        b,
                        [outer * keep_b_outer, inner * keep_b_inner, step, column],
                    )
                };
                sum = mmaf(a_tile, b_tile, sum);
            }
            unsafe {
                finish::<O, BM, BN, BIAS, ACTIVATION>(
                    c,
                    bias,
                    sum,
                    alpha,
                    [outer, inner, row, column],
                )
            };
        }
    }

    /// float32 as three bfloat16 terms whose sum is x: 24 bits. `parts` is (3, batch, r, c).
    /// An infinity has no further terms (inf - inf is NaN); what rounds up to infinity is cut.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn split<const R: i32, const C: i32>(
        parts: &Tensor<bf16, { [-1, -1, -1, -1] }>,
        x: &Tensor<f32, { [-1, -1, -1, -1] }>,
        batches: i32,
    ) {
        let (column, row, batch) = get_tile_block_id();
        let value: Tile<f32, { [R, C] }> =
            unsafe { read::<f32, R, C, 0>(x, [batch / batches, batch % batches, row, column]) };
        let zero: Tile<f32, { [R, C] }> = constant(0.0f32, const_shape![R, C]);
        let infinity: Tile<f32, { [R, C] }> = constant(f32::INFINITY, const_shape![R, C]);
        let rounded: Tile<bf16, { [R, C] }> = convert_tile(value);
        let rounded_wide: Tile<f32, { [R, C] }> = convert_tile(rounded);
        let bits: Tile<i32, { [R, C] }> = bitcast(value);
        let upper: Tile<i32, { [R, C] }> = constant(-65536i32, const_shape![R, C]);
        let cut_wide: Tile<f32, { [R, C] }> = bitcast(andi(bits, upper));
        let cut: Tile<bf16, { [R, C] }> = convert_tile(cut_wide);
        let over: Tile<bool, { [R, C] }> = eq_tile(absf(rounded_wide), infinity);
        let endless: Tile<bool, { [R, C] }> = eq_tile(absf(value), infinity);
        let high: Tile<bf16, { [R, C] }> = select(over, cut, rounded);
        let high_wide: Tile<f32, { [R, C] }> = select(over, cut_wide, rounded_wide);
        let rest: Tile<f32, { [R, C] }> = select(endless, zero, value - high_wide);
        let middle: Tile<bf16, { [R, C] }> = convert_tile(rest);
        let middle_wide: Tile<f32, { [R, C] }> = convert_tile(middle);
        let low: Tile<bf16, { [R, C] }> = convert_tile(rest - middle_wide);
        unsafe { write::<bf16, R, C>(parts, high, [0i32, batch, row, column]) };
        unsafe { write::<bf16, R, C>(parts, middle, [1i32, batch, row, column]) };
        unsafe { write::<bf16, R, C>(parts, low, [2i32, batch, row, column]) };
    }

    /// The product of operands in three terms each: six products of bfloat16, all those above
    /// 2^-27 of the result. The largest has a sum of its own, which alone decides on infinities
    /// and NaN: the small terms of an infinity's partner may be 0.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn matmul_split<
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const BK: i32,
        const GROUP: i32,
        const A_T: i32,
        const B_T: i32,
        const BIAS: i32,
        const ACTIVATION: i32,
    >(
        c: &Tensor<O, { [-1, -1, -1, -1] }>,
        a: &Tensor<bf16, { [-1, -1, -1, -1] }>,
        b: &Tensor<bf16, { [-1, -1, -1, -1] }>,
        bias: &Tensor<O, { [-1] }>,
        alpha: f32,
        batches: i32,
        row_tiles: i32,
        column_tiles: i32,
        steps: i32,
        tiles: i32,
        keep_a_outer: i32,
        keep_a_inner: i32,
        keep_b_outer: i32,
        keep_b_inner: i32,
    ) {
        let first: i32 = get_tile_block_id().0;
        let stride: i32 = get_num_tile_blocks().0;
        for tile in (first..tiles).step_by(stride as usize) {
            let (batch, row, column) = place(tile, row_tiles, column_tiles, GROUP);
            let outer: i32 = batch / batches;
            let inner: i32 = batch % batches;
            let at_a: i32 = outer * keep_a_outer + inner * keep_a_inner;
            let at_b: i32 = outer * keep_b_outer + inner * keep_b_inner;
            let mut large: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            let mut small: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            for step in 0i32..steps {
                let a0: Tile<bf16, { [BM, BK] }> =
                    unsafe { read::<bf16, BM, BK, A_T>(a, [0i32, at_a, row, step]) };
                let b0: Tile<bf16, { [BK, BN] }> =
                    unsafe { read::<bf16, BK, BN, B_T>(b, [0i32, at_b, step, column]) };
                let a1: Tile<bf16, { [BM, BK] }> =
                    unsafe { read::<bf16, BM, BK, A_T>(a, [1i32, at_a, row, step]) };
                let b1: Tile<bf16, { [BK, BN] }> =
                    unsafe { read::<bf16, BK, BN, B_T>(b, [1i32, at_b, step, column]) };
                let a2: Tile<bf16, { [BM, BK] }> =
                    unsafe { read::<bf16, BM, BK, A_T>(a, [2i32, at_a, row, step]) };
                let b2: Tile<bf16, { [BK, BN] }> =
                    unsafe { read::<bf16, BK, BN, B_T>(b, [2i32, at_b, step, column]) };
                large = mmaf(a0, b0, large);
                small = mmaf(a2, b0, small);
                small = mmaf(a0, b2, small);
                small = mmaf(a1, b1, small);
                small = mmaf(a1, b0, small);
                small = mmaf(a0, b1, small);
            }
            let infinity: Tile<f32, { [BM, BN] }> = constant(f32::INFINITY, const_shape![BM, BN]);
            let finite: Tile<bool, { [BM, BN] }> = lt_tile(absf(large), infinity);
            let sum: Tile<f32, { [BM, BN] }> = select(finite, large + small, large);
            unsafe {
                finish::<O, BM, BN, BIAS, ACTIVATION>(
                    c,
                    bias,
                    sum,
                    alpha,
                    [outer, inner, row, column],
                )
            };
        }
    }
}
