//! softmax and log_softmax over one dimension.

pub mod ffi;
pub mod kernel;
mod tiles;

use crate::variant::{Operand, Slot, Source};
use kernel::softmax_module::__module_ast_self;

const MODULE: &str = "softmax_module";
const OUT: Operand = Operand {
    name: "y",
    rank: 3,
    of_output: true,
    scalars: &["y_outer", "y_row"],
    last: None,
};
const IN: Operand = Operand {
    name: "x",
    rank: 3,
    of_output: false,
    scalars: &["x_outer", "x_row"],
    last: Some("columns"),
};

/// A kernel whose blocks have whole rows.
const fn of_rows(entry: &'static str) -> Source {
    Source {
        module: MODULE,
        entry,
        ast: __module_ast_self,
        types: &[Slot::Input, Slot::Output],
        generics: 6,
        operands: &[OUT, IN],
    }
}

pub static ROWS: Source = of_rows("softmax_rows");
pub static AHEAD: Source = of_rows("softmax_ahead");
pub static ONLINE: Source = of_rows("softmax_online");

pub static PARTIAL: Source = Source {
    module: MODULE,
    entry: "softmax_partial",
    ast: __module_ast_self,
    types: &[Slot::Input],
    generics: 4,
    operands: &[IN],
};

pub static FINISH: Source = Source {
    module: MODULE,
    entry: "softmax_finish",
    ast: __module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 6,
    operands: &[
        OUT,
        IN,
        Operand {
            name: "parts",
            rank: 3,
            of_output: false,
            scalars: &[],
            last: None,
        },
    ],
};
