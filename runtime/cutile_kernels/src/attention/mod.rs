//! Scaled dot product attention.

pub mod ffi;
pub mod kernel;

use crate::variant::{Operand, Slot, Source};

pub static ATTENTION: Source = Source {
    module: "attention_module",
    entry: "attention",
    ast: kernel::attention_module::__module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 5,
    operands: &[
        Operand {
            name: "out",
            rank: 4,
            of_output: false,
            scalars: &[],
            last: None,
        },
        Operand {
            name: "q",
            rank: 4,
            of_output: false,
            scalars: &[],
            last: None,
        },
        Operand {
            name: "k",
            rank: 4,
            of_output: false,
            scalars: &[],
            last: None,
        },
        Operand {
            name: "v",
            rank: 4,
            of_output: false,
            scalars: &[],
            last: None,
        },
        Operand {
            name: "mask",
            rank: 4,
            of_output: true,
            scalars: &[],
            last: None,
        },
    ],
};
