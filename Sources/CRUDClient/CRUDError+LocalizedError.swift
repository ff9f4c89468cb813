import CRUDModel

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension CRUDError: LocalizedError {
    /// The message, with which Foundation describes an error to people.
    public var errorDescription: String? { text }
}
