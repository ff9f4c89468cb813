import CRUDPluginHost
import Glibc

let words = CommandLine.arguments.dropFirst()
switch words.first {
case ChildCommand.option: ChildProgram.run(Array(words.dropFirst()))
default:
    StandardStream.error.write(
        "crudd-plugin-host: only crudd starts this; crudd-plugin-check, or crudctl check-plugin, checks a plugin\n")
    exit(64)  // EX_USAGE
}
