# frozen_string_literal: true

require "fcntl"
require "pando/fork_safety/process_state/names"
require "pando/fork_safety/process_state/value"

module Pando
  module ForkSafety
    class ProcessState
      # Asks the kernel about this process. What it does not tell is left out.
      module Reading
        # Places in /proc/self/stat, behind the name.
        NICE = 16
        SCHEDULING = [37, 38].freeze
        MODES = { File::RDONLY => "reading", File::WRONLY => "writing", File::RDWR => "reading and writing" }.freeze
        MODE = File::RDONLY | File::WRONLY | File::RDWR
        IGNORED = Value.new("ignored")
        HANDLED = Value.new("handled")
        private_constant :NICE, :SCHEDULING, :MODES, :MODE

        class << self
          # @return [Hash{String => Value}]
          def all
            status = status()
            { "root" => link("root"), "directory" => link("cwd"), **lines(status), **signals(status),
              **outside("self"), **streams, **environment }.compact
          end

          # What can be changed from outside as well, and read.
          # @param process [Integer, String] its pid
          # @return [Hash{String => Value}]
          def outside(process) = { **limits(process), **priority(process) }

          # @param path [String]
          # @return [Value, nil]
          def file(path, words = path)
            stat = File.stat(path)
            Value.new("#{stat.dev} #{stat.ino}", words)
          rescue SystemCallError
            nil
          end

          private

          def status
            File.read("/proc/self/status")
          rescue SystemCallError
            "" # with another root there may be no /proc
          end

          def link(name)
            path = "/proc/self/#{name}"
            file(path, File.readlink(path))
          rescue SystemCallError
            nil # not even this process may know, once it has given up its user
          end

          def lines(status)
            Names::LINES.transform_values { |name| Value.new(field(status, name).split.join(" ")) }
          end

          def field(status, name) = status[/^#{name}:[ \t]*(.*)$/, 1].to_s

          # Those that the kernel's default does not apply to.
          def signals(status)
            ignored, handled = %w[SigIgn SigCgt].map { |name| field(status, name).hex }
            Names::SIGNALS.each_with_object({}) do |(number, key), found|
              found[key] = IGNORED if ignored[number - 1] == 1
              found[key] = HANDLED if handled[number - 1] == 1
            end
          end

          def limits(process)
            File.read("/proc/#{process}/limits").scan(Names::LIMIT).to_h do |name, soft, hard|
              ["limit #{name}", Value.new("#{soft} (at most #{hard})")]
            end
          rescue SystemCallError
            {}
          end

          # Of the thread that forks, which is the main one.
          def priority(process)
            fields = File.read("/proc/#{process}/stat").rpartition(")").last.split
            level, policy = fields.values_at(*SCHEDULING)
            { "nice" => Value.new(fields.fetch(NICE)), "scheduling" => Value.new("level #{level}, policy #{policy}") }
          rescue SystemCallError
            {}
          end

          # By number: what the constants are now is the application's business.
          def streams = Names::STREAMS.transform_values { |number| stream(number) }

          def stream(number)
            io = IO.for_fd(number, autoclose: false)
            stat = io.stat
            mode = MODES[io.fcntl(Fcntl::F_GETFL) & MODE]
            Value.new("#{stat.dev} #{stat.ino} #{mode}", "#{target(number)} (#{mode}, inode #{stat.ino})")
          rescue SystemCallError
            Value.new("closed")
          end

          def target(number)
            File.readlink("/proc/self/fd/#{number}")
          rescue SystemCallError
            "?"
          end

          def environment = ENV.to_h { |name, text| ["#{Names::VARIABLE}#{name}", Value.new(text.hash, "")] }
        end
      end
    end
  end
end
