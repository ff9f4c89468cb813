import CRUDJSON
import CRUDModel

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value that queries can compare properties with: its coding is one string, number or boolean.
///
/// A type of your own, an enumeration of strings above all, needs no more than to say so:
///
/// ```swift
/// enum Status: String, Codable, QueryValue { case active, dormant }
/// ```
///
/// A value that is coded as anything else makes its query throw ``CRUDError/Code/invalidQuery``.
public protocol QueryValue: Encodable {
    /// What a property of this type is compared with: the type itself, or what an optional wraps.
    associatedtype Comparand: Encodable = Self
}

/// A list that queries can look for values in.
public protocol QueryList {
    /// What the list holds.
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
    /// The literal that `value` is coded as.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery`` where that is no string, number or boolean; an `EncodingError` where the
    ///   value cannot be coded.
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
                .invalidQuery, "\(type(of: value)) is coded as neither a string nor a number nor a boolean",
                details: CRUDError.Details(node: String(decoding: bytes, as: UTF8.self)))
        }
    }
}
