//! Device code of c = activation(alpha * a @ b + bias) over two batch dimensions.
//!
//! `A_T` and `B_T` say that an operand's view has its last two dimensions swapped, as the
//! contiguous one must be the last. `c` is (batch, batch, m, n). The products' sums are float32.

#[cutile::module]
pub mod matmul_module {
    use super::super::tiles::matmul_tiles::*;
    use cutile::core::*;

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
        const FAST: i32,
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
                    finish::<O, BM, BN, BIAS, ACTIVATION, FAST>(
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
