//! Batched matrix products with an epilogue.

pub mod ffi;
pub mod kernel;
mod problem;
pub mod split;
mod tiles;

use crate::variant::{Operand, Slot, Source};
use kernel::matmul_module;
use split::split_module;

const C: Operand = Operand {
    name: "c",
    rank: 4,
    of_output: true,
    scalars: &[],
    last: None,
};
const A: Operand = Operand {
    name: "a",
    rank: 4,
    of_output: false,
    scalars: &[],
    last: None,
};
const B: Operand = Operand {
    name: "b",
    rank: 4,
    of_output: false,
    scalars: &[],
    last: None,
};
const BIAS: Operand = Operand {
    name: "bias",
    rank: 1,
    of_output: true,
    scalars: &[],
    last: None,
};

pub static MATMUL: Source = Source {
    module: "matmul_module",
    entry: "matmul",
    ast: matmul_module::__module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 10,
    operands: &[C, A, B, BIAS],
};

pub static MATMUL_SPLIT: Source = Source {
    module: "split_module",
    entry: "matmul_split",
    ast: split_module::__module_ast_self,
    types: &[Slot::Output],
    generics: 10,
    operands: &[C, A, B, BIAS],
};

pub static SPLIT: Source = Source {
    module: "split_module",
    entry: "split",
    ast: split_module::__module_ast_self,
    types: &[],
    generics: 2,
    operands: &[
        Operand {
            name: "parts",
            rank: 4,
            of_output: true,
            scalars: &[],
            last: None,
        },
        Operand {
            name: "x",
            rank: 4,
            of_output: false,
            scalars: &[],
            last: None,
        },
    ],
};
