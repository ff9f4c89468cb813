import CLinux
import CRUDPluginKit
import Glibc

/// The extended attributes that we keep beside the content of files and directories.
enum Attribute: String {
    /// Of a record's file: the revision.
    case revision = "user.crudd.revision"
    /// Of a record's file: its modification time when the revision was set. If the file has another one, somebody has
    /// edited it, and the revision is not that of its content any more.
    case modified = "user.crudd.modified"
    /// Of a record's file: when the record expires, in milliseconds since 1970-01-01 UTC.
    case expires = "user.crudd.expires"
    /// Of a record's file: the sequence number.
    case sequence = "user.crudd.sequence"
    /// Of a record's file whose name is shortened: the id.
    case id = "user.crudd.id"
    /// Of a collection's directory whose name is shortened: the name.
    case name = "user.crudd.name"
    /// Of a collection's directory: there may be files in it with the attribute `expires`.
    case expiring = "user.crudd.expiring"

    private static let maximumBytes = 512

    /// The value; nil if there is none, or none of ours.
    func value(of descriptor: Int32) throws(StorageFailure) -> [UInt8]? {
        var code: Int32 = 0
        let value = [UInt8](unsafeUninitializedCapacity: Self.maximumBytes) { buffer, count in
            let size = fgetxattr(descriptor, rawValue, buffer.baseAddress, buffer.count)
            if size < 0 { code = errno }
            count = max(size, 0)
        }
        if code == 0 { return value }
        if code == ENODATA || code == ERANGE { return nil }
        throw StorageFailure(errno: code, "cannot read attribute \(rawValue)")
    }

    /// The value as a decimal number; nil if it is none.
    func number<Number: FixedWidthInteger>(of descriptor: Int32) throws(StorageFailure) -> Number? {
        try value(of: descriptor).flatMap { Number(String(decoding: $0, as: UTF8.self)) }
    }

    func set(_ value: some Collection<UInt8>, of descriptor: Int32) throws(StorageFailure) {
        let value = Array(value)
        guard fsetxattr(descriptor, rawValue, value, value.count, 0) == 0 else {
            throw StorageFailure("cannot set attribute \(rawValue)")
        }
    }

    /// Whether the file system has attributes of users at all.
    static func areSupported(by descriptor: Int32) -> Bool {
        fgetxattr(descriptor, Attribute.name.rawValue, nil, 0) >= 0 || errno != EOPNOTSUPP
    }
}
