import CRUDJSON
import CRUDModel

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value with which queries can compare properties: its encoding is one string, number or boolean.
///
/// A type of your own, such as an enumeration of strings, only declares its conformance:
///
/// ```swift
/// enum Status: String, Codable, QueryValue { case active, dormant }
/// ```
///
/// A query with a value that is encoded as anything else throws ``CRUDError/Code/invalidQuery``.
public protocol QueryValue: Encodable {
    /// The type with which a property of this type is compared: the type itself, or the wrapped type of an optional.
    associatedtype Comparand: Encodable = Self
}

/// A list in which queries can search for values.
public protocol QueryList {
    /// The type of its elements.
    associatedtype ListElement: QueryValue
}

extension String: QueryValue {}
extension Bool: QueryValue {}
extension Int: QueryValue {}
extension Int8: QueryValue {}
extension Int16: QueryValue {}
extension Int32: QueryValue {}
extension Int64: QueryValue {}
extension UInt: QueryValue {}
extension UInt8: QueryValue {}
extension UInt16: QueryValue {}
extension UInt32: QueryValue {}
extension UInt64: QueryValue {}
extension Float: QueryValue {}
extension Double: QueryValue {}
extension Decimal: QueryValue {}
extension Date: QueryValue {}
extension UUID: QueryValue {}
extension URL: QueryValue {}

extension Optional: QueryValue where Wrapped: QueryValue {
    public typealias Comparand = Wrapped.Comparand
}

extension Array: QueryList where Element: QueryValue {
    public typealias ListElement = Element
}

extension Set: QueryList where Element: QueryValue {
    public typealias ListElement = Element
}

extension Optional: QueryList where Wrapped: QueryList {
    public typealias ListElement = Wrapped.ListElement
}

extension Literal {
    /// The literal as which `value` is encoded.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery`` if that is not a string, number or boolean; an `EncodingError` if the
    ///   value cannot be encoded.
    init(coding value: some Encodable) throws {
        let bytes = try ItemCoding.text(of: value)
        var scanner = JSONScanner()
        let slice = try scanner.value(bytes.span)
        switch slice.kind {
        case .string: self = .string(String(decoding: slice.decodedString(bytes.span), as: UTF8.self))
        case .true: self = .boolean(true)
        case .false: self = .boolean(false)
        case .number:
            guard let number = JSONNumber(text: String(decoding: bytes[slice.range], as: UTF8.self)) else {
                fallthrough
            }
            self = .number(number)
        case .array, .object, .null:
            throw CRUDError(
                .invalidQuery, "\(type(of: value)) is encoded as neither a string nor a number nor a boolean",
                details: CRUDError.Details(node: String(decoding: bytes, as: UTF8.self)))
        }
    }
}
