//! Device code of softmax and log_softmax along the columns of a (outer, rows, columns) view.
//!
//! `ACCESS` 0 goes through the views; 1 as well, but the rows, not the columns, lie contiguously
//! and the views' last two dimensions are (columns, rows); 2 through pointers, for what TMA cannot
//! take (a view without it loads element by element into far too many registers); 3 through
//! pointers to contiguous columns. `WHOLE` 1: tiles end where rows do. `LOG` chooses log_softmax,
//! `FAST` the hardware's exp2, whose relative error grows with the distance from the maximum, to
//! 6e-6 at e^-88: less than 16-bit results can show. What a tile has past an edge reads as -inf.
//! A row of only -inf gives NaN, as 0/0 does.

#[cutile::module]
pub mod softmax_module {
    use super::super::tiles::softmax_tiles::*;
    use cutile::core::*;

    /// Whole rows in one tile; blocks stride over the tiles.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn softmax_rows<
        E: ElementType,
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const ACCESS: i32,
        const LOG: i32,
        const FAST: i32,
        const WHOLE: i32,
    >(
        y: &Tensor<O, { [-1, -1, -1] }>,
        x: &Tensor<E, { [-1, -1, -1] }>,
        row_tiles: i32,
        tiles: i32,
        rows: i32,
        columns: i32,
        y_outer: i32,
        y_row: i32,
        y_column: i32,
        x_outer: i32,
        x_row: i32,
        x_column: i32,
    ) {
        let y_strides: (i32, i32, i32) = (y_outer, y_row, y_column);
        let x_strides: (i32, i32, i32) = (x_outer, x_row, x_column);
        let first: i32 = get_tile_block_id().0;
        let step: i32 = get_num_tile_blocks().0;
        for tile in (first..tiles).step_by(step as usize) {
            let index: [i32; 3] = [tile / row_tiles, tile % row_tiles, 0i32];
            let value: Tile<f32, { [BM, BN] }> =
                unsafe { read::<E, BM, BN, ACCESS, WHOLE>(x, index, rows, columns, x_strides) };
            let out: Tile<f32, { [BM, BN] }> = whole_rows::<BM, BN, LOG, FAST>(value);
            unsafe { write::<O, BM, BN, ACCESS, WHOLE>(y, out, index, rows, columns, y_strides) };
        }
    }

    /// As softmax_rows, but the next tile is read before this one is written. After the last tile
    /// it is read once more.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn softmax_ahead<
        E: ElementType,
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const ACCESS: i32,
        const LOG: i32,
        const FAST: i32,
        const WHOLE: i32,
    >(
        y: &Tensor<O, { [-1, -1, -1] }>,
        x: &Tensor<E, { [-1, -1, -1] }>,
        row_tiles: i32,
        tiles: i32,
        rows: i32,
        columns: i32,
        y_outer: i32,
        y_row: i32,
        y_column: i32,
        x_outer: i32,
        x_row: i32,
        x_column: i32,
    ) {
        let y_strides: (i32, i32, i32) = (y_outer, y_row, y_column);
        let x_strides: (i32, i32, i32) = (x_outer, x_row, x_column);
        let first: i32 = get_tile_block_id().0;
        let step: i32 = get_num_tile_blocks().0;
        let start: [i32; 3] = [first / row_tiles, first % row_tiles, 0i32];
        let mut value: Tile<f32, { [BM, BN] }> =
            unsafe { read::<E, BM, BN, ACCESS, WHOLE>(x, start, rows, columns, x_strides) };
        for tile in (first..tiles).step_by(step as usize) {
            let after: i32 = tile + step;
            let next: i32 = if after < tiles { after } else { tiles - 1i32 };
            let next_index: [i32; 3] = [next / row_tiles, next % row_tiles, 0i32];
            let ahead: Tile<f32, { [BM, BN] }> = unsafe {
                read::<E, BM, BN, ACCESS, WHOLE>(x, next_index, rows, columns, x_strides)
            };
            let out: Tile<f32, { [BM, BN] }> = whole_rows::<BM, BN, LOG, FAST>(value);
            let index: [i32; 3] = [tile / row_tiles, tile % row_tiles, 0i32];
            unsafe { write::<O, BM, BN, ACCESS, WHOLE>(y, out, index, rows, columns, y_strides) };
            value = ahead;
        }
    }

    /// Rows longer than a tile: a running maximum and sum, then a second pass.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn softmax_online<
        E: ElementType,
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const ACCESS: i32,
        const LOG: i32,
        const FAST: i32,
        const WHOLE: i32,
    >(
        y: &Tensor<O, { [-1, -1, -1] }>,
        x: &Tensor<E, { [-1, -1, -1] }>,
        row_tiles: i32,
        tiles: i32,
        rows: i32,
        columns: i32,
        y_outer: i32,
        y_row: i32,
        y_column: i32,
        x_outer: i32,
        x_row: i32,
        x_column: i32,
        column_tiles: i32,
    ) {
        let y_strides: (i32, i32, i32) = (y_outer, y_row, y_column);
        let x_strides: (i32, i32, i32) = (x_outer, x_row, x_column);
        let first: i32 = get_tile_block_id().0;
        let step: i32 = get_num_tile_blocks().0;
        for tile in (first..tiles).step_by(step as usize) {
            let outer: i32 = tile / row_tiles;
            let row: i32 = tile % row_tiles;
            let mut maximum: Tile<f32, { [BM, 1] }> =
                constant(f32::NEG_INFINITY, const_shape![BM, 1]);
            let mut sum: Tile<f32, { [BM, 1] }> = constant(0.0f32, const_shape![BM, 1]);
            for column in 0i32..column_tiles {
                let value: Tile<f32, { [BM, BN] }> = unsafe {
                    read::<E, BM, BN, ACCESS, WHOLE>(
                        x,
                        [outer, row, column],
                        rows,
                        columns,
                        x_strides,
                    )
                };
                let higher: Tile<f32, { [BM, 1] }> =
                    max_tile(maximum, row_maximum::<BM, BN>(value));
                let base: Tile<f32, { [BM, 1] }> = finite::<BM>(higher);
                let shifted: Tile<f32, { [BM, BN] }> = value - base.broadcast(const_shape![BM, BN]);
                let powers: Tile<f32, { [BM, BN] }> = exponential::<BM, BN, FAST>(shifted);
                let rescale: Tile<f32, { [BM, 1] }> = exp(maximum - base);
                sum = sum * rescale + row_sum::<BM, BN>(powers);
                maximum = higher;
            }
            let base: Tile<f32, { [BM, 1] }> = finite::<BM>(maximum);
            // Backwards: the tiles read last are the ones that the cache still has.
            for back in 0i32..column_tiles {
                let column: i32 = column_tiles - 1i32 - back;
                let value: Tile<f32, { [BM, BN] }> = unsafe {
                    read::<E, BM, BN, ACCESS, WHOLE>(
                        x,
                        [outer, row, column],
                        rows,
                        columns,
                        x_strides,
                    )
                };
                let shifted: Tile<f32, { [BM, BN] }> = value - base.broadcast(const_shape![BM, BN]);
                let out: Tile<f32, { [BM, BN] }> = result::<BM, BN, LOG, FAST>(shifted, sum);
                unsafe {
                    write::<O, BM, BN, ACCESS, WHOLE>(
                        y,
                        out,
                        [outer, row, column],
                        rows,
                        columns,
                        y_strides,
                    )
                };
            }
        }
    }

    /// Few long rows, first half: each block's maximum and sum over its chunk of one row go to
    /// `parts`, (2, outer, rows, chunks). A chunk is `column_tiles` tiles.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn softmax_partial<
        E: ElementType,
        const BN: i32,
        const ACCESS: i32,
        const FAST: i32,
        const WHOLE: i32,
    >(
        parts: *mut f32,
        x: &Tensor<E, { [-1, -1, -1] }>,
        first_row: i32,
        rows: i32,
        all_rows: i32,
        columns: i32,
        chunks: i32,
        column_tiles: i32,
        x_outer: i32,
        x_row: i32,
        x_column: i32,
    ) {
        let x_strides: (i32, i32, i32) = (x_outer, x_row, x_column);
        let (chunk, near_row, _z) = get_tile_block_id();
        let row: i32 = first_row + near_row;
        let outer: i32 = row / rows;
        let inner: i32 = row % rows;
        let mut maximum: Tile<f32, { [1, 1] }> = constant(f32::NEG_INFINITY, const_shape![1, 1]);
        let mut sum: Tile<f32, { [1, 1] }> = constant(0.0f32, const_shape![1, 1]);
        for near in 0i32..column_tiles {
            let value: Tile<f32, { [1, BN] }> = unsafe {
                read::<E, 1, BN, ACCESS, WHOLE>(
                    x,
                    [outer, inner, chunk * column_tiles + near],
                    rows,
                    columns,
                    x_strides,
                )
            };
            let higher: Tile<f32, { [1, 1] }> = max_tile(maximum, row_maximum::<1, BN>(value));
            let base: Tile<f32, { [1, 1] }> = finite::<1>(higher);
            let shifted: Tile<f32, { [1, BN] }> = value - base.broadcast(const_shape![1, BN]);
            let powers: Tile<f32, { [1, BN] }> = exponential::<1, BN, FAST>(shifted);
            let rescale: Tile<f32, { [1, 1] }> = exp(maximum - base);
            sum = sum * rescale + row_sum::<1, BN>(powers);
            maximum = higher;
        }
        let place: PointerTile<*mut f32, { [] }> =
            addptr(pointer_to_tile(parts), row * chunks + chunk);
        let far: PointerTile<*mut f32, { [] }> = addptr(place, all_rows * chunks);
        let maximum_0: Tile<f32, { [] }> = maximum.reshape(const_shape![]);
        let sum_0: Tile<f32, { [] }> = sum.reshape(const_shape![]);
        unsafe {
            store_ptr_tko(
                place,
                maximum_0,
                ordering::Weak,
                None::<scope::TileBlock>,
                None,
                None,
                Latency::<0>,
            );
            store_ptr_tko(
                far,
                sum_0,
                ordering::Weak,
                None::<scope::TileBlock>,
                None,
                None,
                Latency::<0>,
            );
        }
    }

    /// Second half: every block combines its row's parts, then writes its chunk.
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn softmax_finish<
        E: ElementType,
        O: ElementType,
        const BN: i32,
        const CHUNKS: i32,
        const ACCESS: i32,
        const LOG: i32,
        const FAST: i32,
        const WHOLE: i32,
    >(
        y: &Tensor<O, { [-1, -1, -1] }>,
        x: &Tensor<E, { [-1, -1, -1] }>,
        parts: &Tensor<f32, { [-1, -1, -1] }>,
        first_row: i32,
        rows: i32,
        columns: i32,
        chunks: i32,
        column_tiles: i32,
        y_outer: i32,
        y_row: i32,
        y_column: i32,
        x_outer: i32,
        x_row: i32,
        x_column: i32,
    ) {
        let y_strides: (i32, i32, i32) = (y_outer, y_row, y_column);
        let x_strides: (i32, i32, i32) = (x_outer, x_row, x_column);
        let (chunk, near_row, _z) = get_tile_block_id();
        let row: i32 = first_row + near_row;
        let outer: i32 = row / rows;
        let inner: i32 = row % rows;
        let maxima: Tile<f32, { [1, CHUNKS] }> = unsafe {
            read::<f32, 1, CHUNKS, 0, 0>(parts, [0i32, row, 0i32], 0i32, chunks, (0i32, 0i32, 0i32))
        };
        let sums_view: Partition<f32, { [1, 1, CHUNKS] }> =
            parts.partition(const_shape![1, 1, CHUNKS]);
        let sums_block: Tile<f32, { [1, 1, CHUNKS] }> = load_view_tko(
            &sums_view,
            [1i32, row, 0i32],
            ordering::Weak,
            scope::TileBlock,
            None,
            tma::Enabled,
        );
        let sums: Tile<f32, { [1, CHUNKS] }> = sums_block.reshape(const_shape![1, CHUNKS]);
        let base: Tile<f32, { [1, 1] }> = finite::<1>(row_maximum::<1, CHUNKS>(maxima));
        let weights: Tile<f32, { [1, CHUNKS] }> =
            exp(maxima - base.broadcast(const_shape![1, CHUNKS]));
        let sum: Tile<f32, { [1, 1] }> = row_sum::<1, CHUNKS>(sums * weights);
        for near in 0i32..column_tiles {
            let index: [i32; 3] = [outer, inner, chunk * column_tiles + near];
            let value: Tile<f32, { [1, BN] }> =
                unsafe { read::<E, 1, BN, ACCESS, WHOLE>(x, index, rows, columns, x_strides) };
            let shifted: Tile<f32, { [1, BN] }> = value - base.broadcast(const_shape![1, BN]);
            let out: Tile<f32, { [1, BN] }> = result::<1, BN, LOG, FAST>(shifted, sum);
            unsafe { write::<O, 1, BN, ACCESS, WHOLE>(y, out, index, rows, columns, y_strides) };
        }
    }
}
