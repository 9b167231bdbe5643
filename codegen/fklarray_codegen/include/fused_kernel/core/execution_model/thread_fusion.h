// Whether a pattern may let one thread read several elements at once. fklarray's Operations say
// no: their elements are packs already.
#pragma once

namespace fk {

enum class TF : bool { DISABLED = false, ENABLED = true };

}  // namespace fk
