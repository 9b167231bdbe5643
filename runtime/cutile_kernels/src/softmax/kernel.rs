//! Device code of softmax and log_softmax along the columns of a (outer, rows, columns) view.
//!
//! `ACCESS` 0 goes through the views; 1 as well, but the rows, not the columns, lie contiguously
//! and the views' last two dimensions are (columns, rows); 2 through pointers, for what TMA cannot
//! take (a view without it loads element by element into far too many registers); 3 through
//! pointers to contiguous columns. `WHOLE` 1: tiles end where rows do. `LOG` chooses log_softmax, `FAST` the hardware's exp2,
//! whose relative error grows with the distance from the maximum, to 6e-6 at e^-88: less than
//! 16-bit results can show. What a tile has past an edge reads as -inf. A row of only -inf
//! gives NaN, as 0/0 does.

#[cutile::module]
pub mod softmax_module {
    use cutile::core::*;

    /// Pointers to the elements of a tile.
    unsafe fn scattered<E: ElementType, const BM: i32, const BN: i32, const ACCESS: i32>(
        x: &Tensor<E, { [-1, -1, -1] }>,
        index: [i32; 3],
        strides: (i32, i32, i32),
    ) -> PointerTile<*mut E, { [BM, BN] }> {
        let row_ids: Tile<i32, { [BM] }> =
            iota(const_shape![BM]) + broadcast_scalar(index[1] * BM, const_shape![BM]);
        let row_column: Tile<i32, { [BM, 1] }> = row_ids.reshape(const_shape![BM, 1]);
        let column_ids: Tile<i32, { [BN] }> =
            iota(const_shape![BN]) + broadcast_scalar(index[2] * BN, const_shape![BN]);
        let column_row: Tile<i32, { [1, BN] }> = column_ids.reshape(const_shape![1, BN]);
        // Row starts in 64 bits: only one row is sure to stay within 32.
        let row_wide: Tile<i64, { [BM, 1] }> = exti(row_column);
        let row_stride: Tile<i32, { [BM, 1] }> = broadcast_scalar(strides.1, const_shape![BM, 1]);
        let row_stride_wide: Tile<i64, { [BM, 1] }> = exti(row_stride);
        let outer: Tile<i32, { [BM, 1] }> = broadcast_scalar(index[0], const_shape![BM, 1]);
        let outer_wide: Tile<i64, { [BM, 1] }> = exti(outer);
        let outer_stride: Tile<i32, { [BM, 1] }> = broadcast_scalar(strides.0, const_shape![BM, 1]);
        let outer_stride_wide: Tile<i64, { [BM, 1] }> = exti(outer_stride);
        let start: Tile<i64, { [BM, 1] }> =
            row_wide * row_stride_wide + outer_wide * outer_stride_wide;
        let base: PointerTile<*mut E, { [] }> = get_tensor_base(x);
        let base_2: PointerTile<*mut E, { [1, 1] }> = reshape_ptr(base, const_shape![1, 1]);
        let bases: PointerTile<*mut E, { [BM, 1] }> = broadcast_ptr(base_2, const_shape![BM, 1]);
        let starts: PointerTile<*mut E, { [BM, 1] }> = addptr_tile(bases, start);
        let spread: PointerTile<*mut E, { [BM, BN] }> = broadcast_ptr(starts, const_shape![BM, BN]);
        let column_stride: Tile<i32, { [1, BN] }> =
            broadcast_scalar(strides.2, const_shape![1, BN]);
        let along: Tile<i32, { [1, BN] }> = if ACCESS == 3i32 {
            column_row
        } else {
            column_row * column_stride
        };
        let offsets: Tile<i32, { [BM, BN] }> = along.broadcast(const_shape![BM, BN]);
        addptr_tile(spread, offsets)
    }

    /// Which elements of a tile there are.
    fn existing<const BM: i32, const BN: i32, const WHOLE: i32>(
        index: [i32; 3],
        rows: i32,
        columns: i32,
    ) -> Tile<bool, { [BM, BN] }> {
        let row_ids: Tile<i32, { [BM] }> = iota(const_shape![BM]);
        let column_ids: Tile<i32, { [BN] }> = iota(const_shape![BN]);
        let row_column: Tile<i32, { [BM, 1] }> = row_ids.reshape(const_shape![BM, 1]);
        let column_row: Tile<i32, { [1, BN] }> = column_ids.reshape(const_shape![1, BN]);
        let row_end: Tile<i32, { [BM, 1] }> =
            broadcast_scalar(rows - index[1] * BM, const_shape![BM, 1]);
        let column_end: Tile<i32, { [1, BN] }> =
            broadcast_scalar(columns - index[2] * BN, const_shape![1, BN]);
        let row_inside: Tile<bool, { [BM, 1] }> = lt_tile(row_column, row_end);
        let column_inside: Tile<bool, { [1, BN] }> = lt_tile(column_row, column_end);
        let rows_inside: Tile<bool, { [BM, BN] }> = row_inside.broadcast(const_shape![BM, BN]);
        let columns_inside: Tile<bool, { [BM, BN] }> =
            column_inside.broadcast(const_shape![BM, BN]);
        let inside: Tile<bool, { [BM, BN] }> = if WHOLE == 1i32 {
            rows_inside
        } else {
            andi(rows_inside, columns_inside)
        };
        inside
    }

    unsafe fn read<
        E: ElementType,
        const BM: i32,
        const BN: i32,
        const ACCESS: i32,
        const WHOLE: i32,
    >(
        x: &Tensor<E, { [-1, -1, -1] }>,
        index: [i32; 3],
        rows: i32,
        columns: i32,
        strides: (i32, i32, i32),
    ) -> Tile<f32, { [BM, BN] }> {
        let token: Token = get_tensor_token(x);
        let tile: Tile<f32, { [BM, BN] }> = if ACCESS >= 2i32 {
            let pointers: PointerTile<*mut E, { [BM, BN] }> =
                unsafe { scattered::<E, BM, BN, ACCESS>(x, index, strides) };
            let inside: Tile<bool, { [BM, BN] }> = existing::<BM, BN, WHOLE>(index, rows, columns);
            let (loaded, _done): (Tile<E, { [BM, BN] }>, Token) = unsafe {
                load_ptr_tko(
                    pointers,
                    ordering::Weak,
                    None::<scope::TileBlock>,
                    Some(inside),
                    None,
                    None,
                    Latency::<0>,
                )
            };
            let wide: Tile<f32, { [BM, BN] }> = convert_tile(loaded);
            wide
        } else if ACCESS == 1i32 {
            let part: Partition<E, { [1, BM, BN] }> = unsafe {
                make_partition_view(
                    x,
                    const_shape![1, BM, BN],
                    padding::Zero,
                    const_array![0, 2, 1],
                    token,
                )
            };
            let loaded: Tile<E, { [1, BM, BN] }> = load_view_tko(
                &part,
                index,
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
            let flat: Tile<E, { [BM, BN] }> = loaded.reshape(const_shape![BM, BN]);
            let wide: Tile<f32, { [BM, BN] }> = convert_tile(flat);
            wide
        } else {
            let part: Partition<E, { [1, BM, BN] }> = unsafe {
                make_partition_view(
                    x,
                    const_shape![1, BM, BN],
                    padding::Zero,
                    dim_map::Identity,
                    token,
                )
            };
            let loaded: Tile<E, { [1, BM, BN] }> = load_view_tko(
                &part,
                index,
                ordering::Weak,
                scope::TileBlock,
                None,
                tma::Enabled,
            );
            let flat: Tile<E, { [BM, BN] }> = loaded.reshape(const_shape![BM, BN]);
            let wide: Tile<f32, { [BM, BN] }> = convert_tile(flat);
            wide
        };
        let kept: Tile<f32, { [BM, BN] }> = if WHOLE == 1i32 {
            tile
        } else {
            let ids: Tile<i32, { [BN] }> = iota(const_shape![BN]);
            let row: Tile<i32, { [1, BN] }> = ids.reshape(const_shape![1, BN]);
            let end: Tile<i32, { [1, BN] }> =
                broadcast_scalar(columns - index[2] * BN, const_shape![1, BN]);
            let inside: Tile<bool, { [1, BN] }> = lt_tile(row, end);
            let mask: Tile<bool, { [BM, BN] }> = inside.broadcast(const_shape![BM, BN]);
            let lowest: Tile<f32, { [BM, BN] }> = constant(f32::NEG_INFINITY, const_shape![BM, BN]);
            select(mask, tile, lowest)
        };
        kept
    }

    unsafe fn write<
        O: ElementType,
        const BM: i32,
        const BN: i32,
        const ACCESS: i32,
        const WHOLE: i32,
    >(
        y: &Tensor<O, { [-1, -1, -1] }>,
        tile: Tile<f32, { [BM, BN] }>,
        index: [i32; 3],
        rows: i32,
        columns: i32,
        strides: (i32, i32, i32),
    ) {
        let narrow: Tile<O, { [BM, BN] }> = convert_tile(tile);
        if ACCESS >= 2i32 {
            let pointers: PointerTile<*mut O, { [BM, BN] }> =
                unsafe { scattered::<O, BM, BN, ACCESS>(y, index, strides) };
            let inside: Tile<bool, { [BM, BN] }> = existing::<BM, BN, WHOLE>(index, rows, columns);
            unsafe {
                store_ptr_tko(
                    pointers,
                    narrow,
                    ordering::Weak,
                    None::<scope::TileBlock>,
                    Some(inside),
                    None,
                    Latency::<0>,
                );
            }
        } else if ACCESS == 1i32 {
            let turned: Tile<O, { [BN, BM] }> = narrow.transpose();
            let block: Tile<O, { [1, BN, BM] }> = turned.reshape(const_shape![1, BN, BM]);
            let mut part: PartitionMut<O, { [1, BN, BM] }> =
                unsafe { y.partition_full_mut(const_shape![1, BN, BM]) };
            unsafe {
                store_view_tko_mut(
                    &mut part,
                    block,
                    [index[0], index[2], index[1]],
                    ordering::Weak,
                    scope::TileBlock,
                    None,
                    tma::Enabled,
                );
            }
        } else {
            let block: Tile<O, { [1, BM, BN] }> = narrow.reshape(const_shape![1, BM, BN]);
            let mut part: PartitionMut<O, { [1, BM, BN] }> =
                unsafe { y.partition_full_mut(const_shape![1, BM, BN]) };
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
    }

    fn exponential<const BM: i32, const BN: i32, const FAST: i32>(
        x: Tile<f32, { [BM, BN] }>,
    ) -> Tile<f32, { [BM, BN] }> {
        let result: Tile<f32, { [BM, BN] }> = if FAST == 1i32 {
            let log2e: Tile<f32, { [BM, BN] }> = constant(1.442695f32, const_shape![BM, BN]);
            exp2(x * log2e, ftz::Enabled)
        } else {
            exp(x)
        };
        result
    }

    fn row_maximum<const BM: i32, const BN: i32>(
        x: Tile<f32, { [BM, BN] }>,
    ) -> Tile<f32, { [BM, 1] }> {
        let flat: Tile<f32, { [BM] }> = reduce_max(x, 1i32);
        flat.reshape(const_shape![BM, 1])
    }

    fn row_sum<const BM: i32, const BN: i32>(x: Tile<f32, { [BM, BN] }>) -> Tile<f32, { [BM, 1] }> {
        let flat: Tile<f32, { [BM] }> = reduce_sum(x, 1i32);
        flat.reshape(const_shape![BM, 1])
    }

    /// A maximum to subtract: 0 in place of -inf, whose difference to itself is NaN.
    fn finite<const BM: i32>(maximum: Tile<f32, { [BM, 1] }>) -> Tile<f32, { [BM, 1] }> {
        let lowest: Tile<f32, { [BM, 1] }> = constant(f32::NEG_INFINITY, const_shape![BM, 1]);
        let zero: Tile<f32, { [BM, 1] }> = constant(0.0f32, const_shape![BM, 1]);
        let is_lowest: Tile<bool, { [BM, 1] }> = eq_tile(maximum, lowest);
        select(is_lowest, zero, maximum)
    }

    /// exp(shifted) / sum, or shifted - log(sum).
    fn result<const BM: i32, const BN: i32, const LOG: i32, const FAST: i32>(
        shifted: Tile<f32, { [BM, BN] }>,
        sum: Tile<f32, { [BM, 1] }>,
    ) -> Tile<f32, { [BM, BN] }> {
        let y: Tile<f32, { [BM, BN] }> = if LOG == 1i32 {
            let logs: Tile<f32, { [BM, 1] }> = log(sum);
            shifted - logs.broadcast(const_shape![BM, BN])
        } else {
            let one: Tile<f32, { [BM, 1] }> = constant(1.0f32, const_shape![BM, 1]);
            let scale: Tile<f32, { [BM, 1] }> = one / sum;
            let powers: Tile<f32, { [BM, BN] }> = exponential::<BM, BN, FAST>(shifted);
            powers * scale.broadcast(const_shape![BM, BN])
        };
        y
    }

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
            let maximum: Tile<f32, { [BM, 1] }> = row_maximum::<BM, BN>(value);
            let shifted: Tile<f32, { [BM, BN] }> = value - maximum.broadcast(const_shape![BM, BN]);
            let powers: Tile<f32, { [BM, BN] }> = exponential::<BM, BN, FAST>(shifted);
            let sum: Tile<f32, { [BM, 1] }> = row_sum::<BM, BN>(powers);
            let out: Tile<f32, { [BM, BN] }> = if LOG == 1i32 {
                let logs: Tile<f32, { [BM, 1] }> = log(sum);
                shifted - logs.broadcast(const_shape![BM, BN])
            } else {
                let one: Tile<f32, { [BM, 1] }> = constant(1.0f32, const_shape![BM, 1]);
                let scale: Tile<f32, { [BM, 1] }> = one / sum;
                powers * scale.broadcast(const_shape![BM, BN])
            };
            unsafe { write::<O, BM, BN, ACCESS, WHOLE>(y, out, index, rows, columns, y_strides) };
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
