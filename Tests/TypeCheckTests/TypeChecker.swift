import CRUDTestSupport

/// Compiles programs that use the modules of this package.
enum TypeChecker {
    /// The compiler's errors in a program.
    ///
    /// - Parameter options: further options of the compiler.
    static func errors(in program: String, _ options: [String] = []) throws -> [String] {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/main.swift"
        try Files.write(program, to: file)
        let arguments = ["-typecheck", "-swift-version", "6"] + options
        let outcome = try Command.run("swiftc", arguments + searchPaths() + [file])
        let errors = outcome.errorLines.compactMap { line -> String? in
            guard let start = line.firstRange(of: " error: "), !line.hasPrefix(" ") else { return nil }
            return String(line[start.upperBound...])
        }
        guard errors.isEmpty == (outcome.status == .exited(0)) else { throw Failure("swiftc: \(outcome.errors)") }
        return errors
    }

    /// The search paths for SwiftPM's build products: Swift modules in one folder, and a map for each C module.
    private static func searchPaths() throws -> [String] {
        let products = try folder(of: BuildProducts.path(of: "crudctl"))
        let checkouts = "\(folder(of: folder(of: products)))/checkouts"
        var maps = try Files.names(in: products).filter { $0.hasSuffix(".build") }.map { "\(products)/\($0)" }
        for package in try Files.names(in: checkouts) {
            let sources = "\(checkouts)/\(package)/Sources"
            maps += ((try? Files.names(in: sources)) ?? []).map { "\(sources)/\($0)/include" }
        }
        maps = maps.map { "\($0)/module.modulemap" }.filter(Files.exists)
        return ["-I", "\(products)/Modules"] + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    }

    private static func folder(of path: String) -> String {
        path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
    }
}
