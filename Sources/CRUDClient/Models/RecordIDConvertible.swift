#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value that a record's id can be made of: a `String` as it is, an integer in decimal, a `UUID` in lower case.
///
/// A type of your own that is `LosslessStringConvertible` needs no more than to say so; its id is its `description`.
///
/// ```swift
/// extension OrderNumber: RecordIDConvertible {}
/// ```
public protocol RecordIDConvertible: SendableMetatype {
    /// The id's text. Two values that differ must differ in it, code point by code point.
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
