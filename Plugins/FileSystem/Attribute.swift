import CLinux
import CRUDPluginKit
import Glibc

/// The extended attributes that we keep beside the content of files and directories.
enum Attribute: String {
    /// Of a record's file: the revision.
    case revision = "user.crudd.revision"
    /// Of a record's file: its modification time when the revision was set. If the file has another by now, somebody
    /// has edited it, and the revision is not of what is in it any more.
    case modified = "user.crudd.modified"
    /// Of a record's file whose name is shortened: the id.
    case id = "user.crudd.id"
    /// Of a collection's directory whose name is shortened: the name.
    case name = "user.crudd.name"

    private static let maximumBytes = 512

    /// The value; nil if there is none, or none of ours.
    func value(of descriptor: Int32) throws(StorageFailure) -> [UInt8]? {
        var value = [UInt8](repeating: 0, count: Self.maximumBytes)
        let size = fgetxattr(descriptor, rawValue, &value, value.count)
        if size >= 0 { return Array(value.prefix(size)) }
        if errno == ENODATA || errno == ERANGE { return nil }
        throw StorageFailure("cannot read attribute \(rawValue)")
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
