//! Device code of float32 products through three bfloat16 terms of each operand.

#[cutile::module]
pub mod split_module {
    use super::super::tiles::matmul_tiles::*;
    use cutile::core::*;

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
    /// 2^-27 of the result. Tensor cores cut off what does not fit when they add to a sum, so
    /// sums of few products start from zero there and are added up outside. `SUMS` says how:
    /// 0: the large products of each k step from zero, the small ones in one sum; 1: all products
    /// of each k step from zero, the small ones first; 2: as 0, from zero for every four k steps.
    ///
    /// The large products alone decide on infinities and NaN: the small terms of an infinity's
    /// partner may be 0, and 0 * inf is NaN. With `SUMS` 1 they are found once more where the
    /// result is not finite.
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
        const FAST: i32,
        const SUMS: i32,
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
            let zero: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            let one: Tile<f32, { [BM, BN] }> = constant(1.0f32, const_shape![BM, BN]);
            let infinity: Tile<f32, { [BM, BN] }> = constant(f32::INFINITY, const_shape![BM, BN]);
            let mut large: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            let mut small: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
            if SUMS == 2i32 {
                for four in 0i32..(steps + 3i32) / 4i32 {
                    let from: i32 = four * 4i32;
                    let to: i32 = if from + 4i32 < steps {
                        from + 4i32
                    } else {
                        steps
                    };
                    let mut part: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
                    for step in from..to {
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
                        part = mmaf(a0, b0, part);
                        small = mmaf(a2, b0, small);
                        small = mmaf(a0, b2, small);
                        small = mmaf(a1, b1, small);
                        small = mmaf(a1, b0, small);
                        small = mmaf(a0, b1, small);
                    }
                    large = large + part;
                }
            } else if SUMS == 1i32 {
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
                    let mut part: Tile<f32, { [BM, BN] }> = constant(0.0f32, const_shape![BM, BN]);
                    part = mmaf(a2, b0, part);
                    part = mmaf(a0, b2, part);
                    part = mmaf(a1, b1, part);
                    part = mmaf(a1, b0, part);
                    part = mmaf(a0, b1, part);
                    part = mmaf(a0, b0, part);
                    large = large + part;
                }
                let wrong: Tile<f32, { [BM, BN] }> =
                    select(lt_tile(absf(large), infinity), zero, one);
                let wrong_rows: Tile<f32, { [BM] }> = reduce_max(wrong, 1i32);
                let wrong_tile: Tile<f32, { [] }> = reduce_max(wrong_rows, 0i32);
                let wrong_count: Tile<i32, { [] }> = convert_tile(wrong_tile);
                let again: i32 = tile_to_scalar(wrong_count);
                // Nothing is read again where all is finite.
                for step in 0i32..again * steps {
                    let a0: Tile<bf16, { [BM, BK] }> =
                        unsafe { read::<bf16, BM, BK, A_T>(a, [0i32, at_a, row, step]) };
                    let b0: Tile<bf16, { [BK, BN] }> =
                        unsafe { read::<bf16, BK, BN, B_T>(b, [0i32, at_b, step, column]) };
                    small = mmaf(a0, b0, small);
                }
            } else {
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
                    large = large + mmaf(a0, b0, zero);
                    small = mmaf(a2, b0, small);
                    small = mmaf(a0, b2, small);
                    small = mmaf(a1, b1, small);
                    small = mmaf(a1, b0, small);
                    small = mmaf(a0, b1, small);
                }
            }
            let alone: Tile<bool, { [BM, BN] }> = if SUMS == 1i32 {
                lt_tile(absf(small), infinity)
            } else {
                lt_tile(absf(large), infinity)
            };
            let sum: Tile<f32, { [BM, BN] }> = if SUMS == 1i32 {
                select(alone, large, small)
            } else {
                select(alone, large + small, large)
            };
            unsafe {
                finish::<O, BM, BN, BIAS, ACTIVATION, FAST>(
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
