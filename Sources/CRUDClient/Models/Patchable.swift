#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The type of a property that ``PatchedProperty`` counts: a number, or an optional one.
public protocol PatchableNumber {
    /// The type of the number that is added.
    associatedtype Number: Numeric & Encodable = Self
}

/// The type of a property to which ``PatchedProperty`` adds elements: an array, a set, or an optional one.
public protocol PatchableList {
    /// The type of its elements.
    associatedtype PatchElement: Encodable
}

extension Int: PatchableNumber {}
extension Int8: PatchableNumber {}
extension Int16: PatchableNumber {}
extension Int32: PatchableNumber {}
extension Int64: PatchableNumber {}
extension UInt: PatchableNumber {}
extension UInt8: PatchableNumber {}
extension UInt16: PatchableNumber {}
extension UInt32: PatchableNumber {}
extension UInt64: PatchableNumber {}
extension Float: PatchableNumber {}
extension Double: PatchableNumber {}
extension Decimal: PatchableNumber {}

extension Optional: PatchableNumber where Wrapped: PatchableNumber {
    public typealias Number = Wrapped.Number
}

extension Array: PatchableList where Element: Encodable {
    public typealias PatchElement = Element
}

extension Set: PatchableList where Element: Encodable {
    public typealias PatchElement = Element
}

extension Optional: PatchableList where Wrapped: PatchableList {
    public typealias PatchElement = Wrapped.PatchElement
}
