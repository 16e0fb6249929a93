"""msgspec types as the structural OpenAPI v3 schemas that a CustomResourceDefinition takes.

Structural means: no `$ref`, no `anyOf` with null, every node one type. What a type cannot say goes
into `Meta(extra_json_schema={...})`, which is merged last: CEL rules
(`x-kubernetes-validations`), list maps, `x-kubernetes-preserve-unknown-fields`, formats.
"""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import inspect as types

Schema = dict[str, Any]

_INT32_MOST = 2**31 - 1


def schema_of(kind: Any) -> Schema:
    """Return the structural schema of a type.

    Known: Structs (with `rename`, defaults and the text after a field as its description), str,
    int, float, bool, datetime, bytes, StrEnum and Literal of texts, lists, sets, dicts with text
    keys, `X | None` as an optional X, `str | int` as int-or-string, and `Any`, `Raw`,
    `dict[str, Any]` as whatever the user wrote.

    Raises:
        TypeError: A type has no structural schema; says where and which.
    """
    return _schema(types.type_info(kind), getattr(kind, "__name__", str(kind)), ())


def is_required(kind: Any) -> bool:
    """Whether a Struct has a field that must be given, so that whoever holds it is required too."""
    info = types.type_info(kind)
    return isinstance(info, types.StructType) and any(field.required for field in info.fields)


def _schema(info: types.Type, where: str, outer: tuple[type, ...]) -> Schema:
    match info:
        case types.Metadata(type=inner, extra_json_schema=extra):
            return _schema(inner, where, outer) | (extra or {})
        case types.UnionType(types=members):
            return _union(members, where, outer)
        case types.StructType():
            return _struct(info, where, outer)
        case types.DictType():
            return _dict(info, where, outer)
        case (
            types.ListType(item_type=item)
            | types.VarTupleType(item_type=item)
            | types.SetType(item_type=item)
            | types.FrozenSetType(item_type=item)
        ):
            schema: Schema = {"type": "array", "items": _schema(item, f"{where}[]", outer)}
            if isinstance(info, types.SetType | types.FrozenSetType):
                schema["x-kubernetes-list-type"] = "set"
            return schema | _given(minItems=info.min_length, maxItems=info.max_length)
        case types.AnyType() | types.RawType():
            return {"x-kubernetes-preserve-unknown-fields": True}
        case _:
            return _scalar(info, where)


def _scalar(info: types.Type, where: str) -> Schema:
    match info:
        case types.StrType():
            return {"type": "string"} | _given(
                minLength=info.min_length, maxLength=info.max_length, pattern=info.pattern
            )
        case types.IntType():
            small = info.le is not None and info.le <= _INT32_MOST
            return {"type": "integer", "format": "int32" if small else "int64"} | _bounds(info)
        case types.FloatType():
            return {"type": "number", "format": "double"} | _bounds(info)
        case types.BoolType():
            return {"type": "boolean"}
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case types.BytesType():
            return {"type": "string", "format": "byte"}
        case types.EnumType(cls=enum):
            return _enum([member.value for member in enum], where)
        case types.LiteralType(values=values):
            return _enum(list(values), where)
    raise TypeError(f"{where}: {type(info).__name__} has no structural schema")


def _enum(values: list[Any], where: str) -> Schema:
    if not all(isinstance(value, str) for value in values):
        raise TypeError(f"{where}: only enumerations of texts have a structural schema")
    return {"type": "string", "enum": values}


def _bounds(info: types.IntType | types.FloatType) -> Schema:
    # OpenAPI v3.0 marks a bound as exclusive by a second, boolean field.
    schema = _given(multipleOf=info.multiple_of)
    for low, exclusive in ((info.ge, False), (info.gt, True)):
        if low is not None:
            schema["minimum"] = low
            if exclusive:
                schema["exclusiveMinimum"] = True
    for high, exclusive in ((info.le, False), (info.lt, True)):
        if high is not None:
            schema["maximum"] = high
            if exclusive:
                schema["exclusiveMaximum"] = True
    return schema


def _given(**constraints: Any) -> Schema:
    return {name: value for name, value in constraints.items() if value is not None}


def _union(members: tuple[types.Type, ...], where: str, outer: tuple[type, ...]) -> Schema:
    # The API server drops nulls of fields that are not nullable: `X | None` is an optional X.
    present = [member for member in members if not isinstance(member, types.NoneType)]
    if len(present) == 1:
        return _schema(present[0], where, outer)
    text, number = _text_and_number(present)
    if text is None or number is None:
        raise TypeError(f"{where}: of the unions only 'X | None' and 'str | int' are structural")
    schema: Schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    return schema | _given(
        pattern=text.pattern, minLength=text.min_length, maxLength=text.max_length
    )


def _text_and_number(
    members: list[types.Type],
) -> tuple[types.StrType | None, types.IntType | None]:
    if len(members) != 2:
        return None, None
    text = next((member for member in members if isinstance(member, types.StrType)), None)
    number = next((member for member in members if isinstance(member, types.IntType)), None)
    return text, number


def _dict(info: types.DictType, where: str, outer: tuple[type, ...]) -> Schema:
    if not isinstance(info.key_type, types.StrType):
        raise TypeError(f"{where}: the keys of a map must be texts")
    if isinstance(info.value_type, types.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    values = _schema(info.value_type, f"{where}[key]", outer)
    return {"type": "object", "additionalProperties": values} | _given(
        minProperties=info.min_length, maxProperties=info.max_length
    )


def _struct(info: types.StructType, where: str, outer: tuple[type, ...]) -> Schema:
    cls = info.cls
    if cls in outer:
        raise TypeError(f"{where}: {cls.__name__} contains itself, which no structural schema says")
    if info.array_like or info.tag_field is not None:
        raise TypeError(f"{where}: {cls.__name__} is tagged or an array, not a plain object")
    texts = _descriptions(cls)
    properties: Schema = {}
    for field in info.fields:
        schema = _schema(field.type, f"{where}.{field.encode_name}", (*outer, cls))
        if field.name in texts:
            schema = {"description": texts[field.name]} | schema
        default = _default(field)
        if default is not None:
            schema["default"] = default
        properties[field.encode_name] = schema
    result: Schema = {"type": "object"}
    own = cls.__dict__.get("__doc__")
    if own:
        result["description"] = _one_line(own)
    if properties:
        result["properties"] = properties
    required = [field.encode_name for field in info.fields if field.required]
    if required:
        result["required"] = required
    return result


def _default(field: types.Field) -> Any:
    """Return the default to write out; an empty one means the same as an absent field."""
    default = field.default
    if default is msgspec.NODEFAULT or default is msgspec.UNSET or not default:
        return None
    default = msgspec.to_builtins(default)
    return default if isinstance(default, str | int | float | bool) else None


def _descriptions(cls: type) -> dict[str, str]:
    """Return the text literals that follow the fields of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            # Made without a source file (interactive, generated): the schema just says less.
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for field, text in pairwise(body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as description)),
                ):
                    found[name] = _one_line(description)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
