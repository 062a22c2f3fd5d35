# frozen_string_literal: true

module Pando
  module ForkSafety
    class Examination
      # The native stack from a debugger, if one is installed.
      #
      # @api private
      module Debugger
        # Seconds. Afterwards the debugger is killed, and the process that it looked at runs on.
        PATIENCE = 8.0
        FRAMES = 40
        # The debugger downloads no symbols and reads no settings from the process's directory.
        COMMANDS = {
          "eu-stack" => ->(pid) { ["eu-stack", "-m", "-n", FRAMES.to_s, "-p", pid.to_s] },
          "gdb" => lambda do |pid|
            ["gdb", "-nx", "-nh", "-batch", "-iex", "set auto-load off", "-ex", "thread apply all backtrace #{FRAMES}",
             "-p", pid.to_s]
          end
        }.freeze
        # The lines to keep of the debugger's output.
        FRAME = /\A(?:#\d+ |Thread \d|TID )/

        class << self
          # @return [Array<String>] lines; empty without a debugger, or without permission
          def stack(pid)
            name = COMMANDS.keys.find { |command| installed?(command) } or return []
            lines = run(COMMANDS.fetch(name).call(pid)).lines(chomp: true).grep(FRAME)
            lines.empty? ? [] : ["native stack, by #{name}:", *lines]
          end

          # @return [Boolean]
          def installed?(command)
            ENV.fetch("PATH", "").split(":").any? { |folder| File.executable?(File.join(folder, command)) }
          end

          private

          def run(command)
            reader, writer = IO.pipe
            pid = spawn({ "DEBUGINFOD_URLS" => nil }, *command, in: File::NULL, out: writer, err: File::NULL,
                                                                chdir: "/")
            writer.close
            read(reader)
          rescue SystemCallError
            ""
          ensure
            reader&.close
            end_process(pid) if pid
          end

          def read(reader, text = +"")
            deadline = now + PATIENCE
            while (left = deadline - now).positive? && IO.select([reader], nil, nil, left)
              text << reader.readpartial(65_536)
            end
            text
          rescue EOFError
            text
          end

          def end_process(pid)
            Process.kill("KILL", pid)
            Process.wait(pid)
          rescue SystemCallError
            nil
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
