import CRUDJSON
import CRUDModel

/// Receives the values of a property list one by one: a writer of one of its forms, or of JSON.
///
/// A dictionary is ``beginDictionary()``, then for each member its ``key(_:)`` and a value, then ``endDictionary()``.
/// Strings and keys are valid UTF-8. Where the work is stopped, what has been received means nothing.
protocol PropertyListSink: ~Copyable {
    mutating func beginDictionary() throws(CRUDError)
    mutating func endDictionary()
    mutating func beginArray() throws(CRUDError)
    mutating func endArray()
    mutating func key(_ name: Span<UInt8>, _ work: inout Work) throws(CRUDError)
    mutating func string(_ value: Span<UInt8>, _ work: inout Work) throws(CRUDError)
    mutating func integer(_ value: Int128) throws(CRUDError)
    mutating func real(_ value: Double) throws(CRUDError)
    mutating func boolean(_ value: Bool) throws(CRUDError)
}
