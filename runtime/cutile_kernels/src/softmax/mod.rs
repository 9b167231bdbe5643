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

pub static ROWS: Source = Source {
    module: MODULE,
    entry: "softmax_rows",
    ast: __module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 6,
    operands: &[OUT, IN],
};

pub static AHEAD: Source = Source {
    module: MODULE,
    entry: "softmax_ahead",
    ast: __module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 6,
    operands: &[OUT, IN],
};

pub static ONLINE: Source = Source {
    module: MODULE,
    entry: "softmax_online",
    ast: __module_ast_self,
    types: &[Slot::Input, Slot::Output],
    generics: 6,
    operands: &[OUT, IN],
};

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
