#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value that can be a record's id: a `String` itself, an integer in decimal, a `UUID` in lower case.
///
/// A type of your own that is `LosslessStringConvertible` only declares its conformance; the id is its `description`.
///
/// ```swift
/// extension OrderNumber: RecordIDConvertible {}
/// ```
public protocol RecordIDConvertible: SendableMetatype {
    /// The id's text. Different values must have different texts, compared by code point.
    var recordID: String { get }
}

extension RecordIDConvertible where Self: LosslessStringConvertible {
    public var recordID: String { description }
}

extension String: RecordIDConvertible {}
extension Substring: RecordIDConvertible {}
extension Int: RecordIDConvertible {}
extension Int8: RecordIDConvertible {}
extension Int16: RecordIDConvertible {}
extension Int32: RecordIDConvertible {}
extension Int64: RecordIDConvertible {}
extension UInt: RecordIDConvertible {}
extension UInt8: RecordIDConvertible {}
extension UInt16: RecordIDConvertible {}
extension UInt32: RecordIDConvertible {}
extension UInt64: RecordIDConvertible {}

extension UUID: RecordIDConvertible {
    public var recordID: String { uuidString.lowercased() }
}
