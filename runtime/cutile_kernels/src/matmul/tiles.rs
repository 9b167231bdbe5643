//! What the kernels of the products do with one tile.
//!
//! An operand's view has its last two dimensions swapped where `SWAPPED` is 1, as the contiguous
//! one must be the last.

#[cutile::module]
pub mod matmul_tiles {
    use cutile::core::*;

    pub unsafe fn read<E: ElementType, const R: i32, const C: i32, const SWAPPED: i32>(
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

    pub unsafe fn write<O: ElementType, const R: i32, const C: i32>(
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
    pub fn place(tile: i32, row_tiles: i32, column_tiles: i32, group: i32) -> (i32, i32, i32) {
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

    fn quotient<const R: i32, const C: i32, const FAST: i32>(
        x: Tile<f32, { [R, C] }>,
        y: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let result: Tile<f32, { [R, C] }> = if FAST == 1i32 {
            divf(x, y, rounding::Approx, ftz::Enabled)
        } else {
            x / y
        };
        result
    }

    fn power<const R: i32, const C: i32, const FAST: i32>(
        x: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let result: Tile<f32, { [R, C] }> = if FAST == 1i32 {
            let log2e: Tile<f32, { [R, C] }> = constant(1.442695f32, const_shape![R, C]);
            exp2(x * log2e, ftz::Enabled)
        } else {
            exp(x)
        };
        result
    }

    /// 0 none, 1 relu, 2 gelu, 3 gelu by tanh, 4 silu. `FAST` 1: the hardware's exp2 and
    /// reciprocal, to 1e-6, for results of 16 bits.
    pub fn activate<const R: i32, const C: i32, const ACTIVATION: i32, const FAST: i32>(
        x: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let one: Tile<f32, { [R, C] }> = constant(1.0f32, const_shape![R, C]);
        let y: Tile<f32, { [R, C] }> = if ACTIVATION == 1i32 {
            let zero: Tile<f32, { [R, C] }> = constant(0.0f32, const_shape![R, C]);
            maxf(x, zero, nan::Enabled, ftz::Disabled)
        } else if ACTIVATION == 2i32 {
            let zero: Tile<f32, { [R, C] }> = constant(0.0f32, const_shape![R, C]);
            let lost: Tile<f32, { [R, C] }> = x * tail::<R, C, FAST>(x);
            select(lt_tile(x, zero), lost, x - lost)
        } else if ACTIVATION == 3i32 {
            // (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), which loses nothing where tanh is near -1.
            let cubic: Tile<f32, { [R, C] }> = constant(0.044715f32, const_shape![R, C]);
            let scale: Tile<f32, { [R, C] }> = constant(-1.5957691f32, const_shape![R, C]);
            let u: Tile<f32, { [R, C] }> = scale * x * (one + cubic * x * x);
            quotient::<R, C, FAST>(x, one + power::<R, C, FAST>(u))
        } else if ACTIVATION == 4i32 {
            quotient::<R, C, FAST>(x, one + power::<R, C, FAST>(negf(x)))
        } else {
            x
        };
        y
    }

    /// (1 - erf(|x| / sqrt(2))) / 2, to 1e-7 (Abramowitz and Stegun 7.1.26).
    fn tail<const R: i32, const C: i32, const FAST: i32>(
        x: Tile<f32, { [R, C] }>,
    ) -> Tile<f32, { [R, C] }> {
        let one: Tile<f32, { [R, C] }> = constant(1.0f32, const_shape![R, C]);
        let p: Tile<f32, { [R, C] }> = constant(0.23164189f32, const_shape![R, C]);
        let a1: Tile<f32, { [R, C] }> = constant(0.127414796f32, const_shape![R, C]);
        let a2: Tile<f32, { [R, C] }> = constant(-0.142248368f32, const_shape![R, C]);
        let a3: Tile<f32, { [R, C] }> = constant(0.7107068705f32, const_shape![R, C]);
        let a4: Tile<f32, { [R, C] }> = constant(-0.7265760135f32, const_shape![R, C]);
        let a5: Tile<f32, { [R, C] }> = constant(0.5307027145f32, const_shape![R, C]);
        let minus_half: Tile<f32, { [R, C] }> = constant(-0.5f32, const_shape![R, C]);
        let t: Tile<f32, { [R, C] }> = quotient::<R, C, FAST>(one, one + p * absf(x));
        let series: Tile<f32, { [R, C] }> = ((((a5 * t + a4) * t + a3) * t + a2) * t + a1) * t;
        series * power::<R, C, FAST>(minus_half * x * x)
    }

    pub unsafe fn finish<
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const BIAS: i32,
        const ACTIVATION: i32,
        const FAST: i32,
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
        let active: Tile<f32, { [BM, BN] }> = activate::<BM, BN, ACTIVATION, FAST>(y);
        let out: Tile<O, { [BM, BN] }> = convert_tile(active);
        unsafe { write::<O, BM, BN>(c, out, index) };
    }
}
