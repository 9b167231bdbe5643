// The kinds of Operation. They differ in what exec() takes and gives:
//   ReadType      OutputType exec(Point, params)
//   ReadBackType  OutputType exec(Point, params, backIOp)
//   UnaryType     OutputType exec(input)
//   BinaryType    OutputType exec(input, params)
//   TernaryType   OutputType exec(input, params, backIOp)
//   OpenType      OutputType exec(Point, input, params)
//   MidWriteType  InputType  exec(Point, input, params): writes, and passes its input on
//   WriteType     void       exec(Point, input, params)
#pragma once

#include <fklarray/lean.h>

namespace fk {

struct ReadType;
struct ReadBackType;
struct UnaryType;
struct BinaryType;
struct TernaryType;
struct OpenType;
struct MidWriteType;
struct WriteType;

template <typename Type, typename OpOrIOp>
constexpr bool opIs = lean::is_same_v<typename OpOrIOp::InstanceType, Type>;

template <typename OpOrIOp>
constexpr bool isAnyCompleteReadType = opIs<ReadType, OpOrIOp> || opIs<ReadBackType, OpOrIOp>;

}  // namespace fk
