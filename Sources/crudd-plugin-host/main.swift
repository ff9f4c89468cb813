import CRUDPluginHost
import Glibc

let words = CommandLine.arguments.dropFirst()
switch words.first {
case "--check": exit(CheckCommand.run(words.dropFirst()))
case CrashWorkloadCommand.option: exit(CrashWorkloadCommand.run(Array(words.dropFirst())))
case ChildCommand.option: ChildProgram.run(Array(words.dropFirst()))
default:
    StandardStream.error.write("crudd-plugin-host: wrong usage\n\(CheckCommand.usage)\n")
    exit(64)  // EX_USAGE
}
