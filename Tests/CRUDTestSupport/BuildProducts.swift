import Glibc

/// The build products of SwiftPM. All of them are in one folder, that of the test program. The variable
/// `CRUDD_PRODUCTS` may name another folder, with products to be tested in place of those.
package enum BuildProducts {
    /// The path of a product, such as `crudd` or `libsqlite.so`.
    package static func path(of name: String) throws -> String {
        if let folder = getenv("CRUDD_PRODUCTS") {
            let candidate = "\(String(cString: folder))/\(name)"
            if access(candidate, R_OK) == 0 { return candidate }
        }
        for start in [try executable(), CommandLine.arguments[0]] {
            var folder = start[...]
            while let slash = folder.lastIndex(of: "/") {
                folder = folder[..<slash]
                let candidate = "\(folder)/\(name)"
                if access(candidate, R_OK) == 0, Files.status(candidate).map({ $0.st_mode & S_IFMT }) == S_IFREG {
                    return candidate
                }
                if folder.hasSuffix("/.build") { break }
            }
        }
        throw Failure("\(name) is not in the folder of \(try executable()): has the whole package been built?")
    }

    /// A copy of a product that any user can execute: a clone may be in a home that only its owner may enter.
    package static func copy(of name: String, to directory: TemporaryDirectory) throws -> String {
        let copy = "\(directory.path)/\(name)"
        try Files.copy(path(of: name), to: copy, mode: 0o755)
        return copy
    }

    /// Whether the products are those of a release build, which keeps the times that the documents promise. A debug
    /// build on a busy machine does not: there tests hold it to bounds that only tell slow from never.
    package static var areOptimized: Bool {
        getenv("CRUDD_PRODUCTS").map { String(cString: $0).hasSuffix("release") } ?? false
    }

    /// The root of the package's sources.
    package static var packageDirectory: String {
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
    }

    private static func executable() throws -> String {
        guard let path = realpath("/proc/self/exe", nil) else { throw Failure.system("realpath /proc/self/exe") }
        defer { free(path) }
        return String(cString: path)
    }
}
