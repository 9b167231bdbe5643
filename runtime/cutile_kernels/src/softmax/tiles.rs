//! What the softmax kernels do with one tile; kernel.rs says what the generics mean.

#[cutile::module]
pub mod softmax_tiles {
    use cutile::core::*;

    /// Pointers to the elements of a tile.
    pub unsafe fn scattered<E: ElementType, const BM: i32, const BN: i32, const ACCESS: i32>(
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
    pub fn existing<const BM: i32, const BN: i32, const WHOLE: i32>(
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

    pub unsafe fn read<
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

    pub unsafe fn write<
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

    pub fn exponential<const BM: i32, const BN: i32, const FAST: i32>(
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

    pub fn row_maximum<const BM: i32, const BN: i32>(
        x: Tile<f32, { [BM, BN] }>,
    ) -> Tile<f32, { [BM, 1] }> {
        let flat: Tile<f32, { [BM] }> = reduce_max(x, 1i32);
        flat.reshape(const_shape![BM, 1])
    }

    pub fn row_sum<const BM: i32, const BN: i32>(
        x: Tile<f32, { [BM, BN] }>,
    ) -> Tile<f32, { [BM, 1] }> {
        let flat: Tile<f32, { [BM] }> = reduce_sum(x, 1i32);
        flat.reshape(const_shape![BM, 1])
    }

    /// A maximum to subtract: 0 in place of -inf, whose difference to itself is NaN.
    pub fn finite<const BM: i32>(maximum: Tile<f32, { [BM, 1] }>) -> Tile<f32, { [BM, 1] }> {
        let lowest: Tile<f32, { [BM, 1] }> = constant(f32::NEG_INFINITY, const_shape![BM, 1]);
        let zero: Tile<f32, { [BM, 1] }> = constant(0.0f32, const_shape![BM, 1]);
        let is_lowest: Tile<bool, { [BM, 1] }> = eq_tile(maximum, lowest);
        select(is_lowest, zero, maximum)
    }

    /// exp(shifted) / sum, or shifted - log(sum).
    pub fn result<const BM: i32, const BN: i32, const LOG: i32, const FAST: i32>(
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

    /// softmax of a tile's rows.
    pub fn whole_rows<const BM: i32, const BN: i32, const LOG: i32, const FAST: i32>(
        value: Tile<f32, { [BM, BN] }>,
    ) -> Tile<f32, { [BM, BN] }> {
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
        out
    }
}
