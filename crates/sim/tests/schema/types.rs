//! A serializer that records the types of a value instead of the value.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::rc::Rc;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Record every type in `value`: `Struct.3.field: type`, `Enum::2.Variant: type`.
pub fn record_types(value: &impl Serialize, types: &mut BTreeSet<String>) {
    let lines = Rc::new(RefCell::new(std::mem::take(types)));
    value
        .serialize(TypeRecorder { lines: Rc::clone(&lines) })
        .expect("the recorder accepts every type");
    *types = lines.take();
}

#[derive(Clone)]
struct TypeRecorder {
    lines: Rc<RefCell<BTreeSet<String>>>,
}

impl TypeRecorder {
    // Every type of a device is instantiated here, so keep this function small.
    fn type_of<T: Serialize + ?Sized>(&self, value: &T) -> Result<String, UnsupportedType> {
        value.serialize(self.clone())
    }

    fn some(inner: Result<String, UnsupportedType>) -> Result<String, UnsupportedType> {
        Ok(format!("Option<{}>", inner?))
    }

    /// Record `path` of the type `type_name`, which has one unnamed part.
    fn newtype(
        &self,
        type_name: &str,
        path: String,
        inner: Result<String, UnsupportedType>,
    ) -> Result<String, UnsupportedType> {
        self.line(format!("{path}: {}", inner?));
        Ok(type_name.into())
    }

    fn line(&self, line: String) {
        self.lines.borrow_mut().insert(line);
    }

    fn parts(&self, of: String, whole: String) -> CompositeType {
        CompositeType { types: self.clone(), of, whole, count: 0, inner: BTreeSet::new() }
    }
}

/// A kind of value that no device has.
#[derive(Debug)]
struct UnsupportedType(String);

impl Display for UnsupportedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnsupportedType {}

impl serde::ser::Error for UnsupportedType {
    fn custom<T: Display>(text: T) -> UnsupportedType {
        UnsupportedType(text.to_string())
    }
}

/// A value of several parts; the name of the whole is its type.
struct CompositeType {
    types: TypeRecorder,
    /// Prefix of its parts; empty if the parts form the type.
    of: String,
    whole: String,
    count: usize,
    inner: BTreeSet<String>,
}

impl CompositeType {
    fn part<T: Serialize + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), UnsupportedType> {
        let part = self.types.type_of(value);
        self.take(name, part)
    }

    fn take(
        &mut self,
        name: &str,
        part: Result<String, UnsupportedType>,
    ) -> Result<(), UnsupportedType> {
        let part = part?;
        if self.of.is_empty() {
            self.inner.insert(part);
        } else {
            let point = if name.is_empty() { "" } else { "." };
            self.types.line(format!("{}.{}{point}{name}: {part}", self.of, self.count));
        }
        self.count += 1;
        Ok(())
    }

    fn named(self) -> Result<String, UnsupportedType> {
        if !self.of.is_empty() {
            return Ok(self.whole);
        }
        let inner: Vec<String> = self.inner.into_iter().collect();
        Ok(format!("{}<{}>", self.whole, inner.join(" | ")))
    }
}

macro_rules! plain {
    ($($method:ident: $type:ty),+ $(,)?) => {
        $(fn $method(self, _: $type) -> Result<String, UnsupportedType> {
            Ok(stringify!($type).into())
        })+
    };
}

impl Serializer for TypeRecorder {
    type Ok = String;
    type Error = UnsupportedType;
    type SerializeSeq = CompositeType;
    type SerializeTuple = CompositeType;
    type SerializeTupleStruct = CompositeType;
    type SerializeTupleVariant = CompositeType;
    type SerializeMap = CompositeType;
    type SerializeStruct = CompositeType;
    type SerializeStructVariant = CompositeType;

    plain! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8],
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_none(self) -> Result<String, UnsupportedType> {
        Ok("Option".into())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, UnsupportedType> {
        TypeRecorder::some(self.type_of(value))
    }

    fn serialize_unit(self) -> Result<String, UnsupportedType> {
        Ok("()".into())
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<String, UnsupportedType> {
        Ok(name.into())
    }

    fn serialize_unit_variant(
        self,
        of: &str,
        at: u32,
        name: &str,
    ) -> Result<String, UnsupportedType> {
        self.line(format!("{of}::{at}.{name}"));
        Ok(of.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<String, UnsupportedType> {
        self.newtype(name, name.into(), self.type_of(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        of: &'static str,
        at: u32,
        name: &'static str,
        value: &T,
    ) -> Result<String, UnsupportedType> {
        self.newtype(of, format!("{of}::{at}.{name}"), self.type_of(value))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(String::new(), "Vec".into()))
    }

    fn serialize_tuple(self, length: usize) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(String::new(), format!("tuple{length}")))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(name.into(), name.into()))
    }

    fn serialize_tuple_variant(
        self,
        of: &'static str,
        at: u32,
        name: &'static str,
        _: usize,
    ) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(format!("{of}::{at}.{name}"), of.into()))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(String::new(), "Map".into()))
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(name.into(), name.into()))
    }

    fn serialize_struct_variant(
        self,
        of: &'static str,
        at: u32,
        name: &'static str,
        _: usize,
    ) -> Result<CompositeType, UnsupportedType> {
        Ok(self.parts(format!("{of}::{at}.{name}"), of.into()))
    }
}

macro_rules! elements {
    ($($trait:ident::$method:ident),+ $(,)?) => {
        $(impl $trait for CompositeType {
            type Ok = String;
            type Error = UnsupportedType;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), UnsupportedType> {
                self.part("", value)
            }

            fn end(self) -> Result<String, UnsupportedType> {
                self.named()
            }
        })+
    };
}

elements! {
    SerializeSeq::serialize_element, SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field, SerializeTupleVariant::serialize_field,
}

macro_rules! fields {
    ($($trait:ident),+ $(,)?) => {
        $(impl $trait for CompositeType {
            type Ok = String;
            type Error = UnsupportedType;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), UnsupportedType> {
                self.part(name, value)
            }

            fn end(self) -> Result<String, UnsupportedType> {
                self.named()
            }
        })+
    };
}

fields! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for CompositeType {
    type Ok = String;
    type Error = UnsupportedType;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), UnsupportedType> {
        self.part("", key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), UnsupportedType> {
        if self.count == 0 {
            return Err(UnsupportedType::custom("a value without a key"));
        }
        self.part("", value)
    }

    fn end(self) -> Result<String, UnsupportedType> {
        self.named()
    }
}
