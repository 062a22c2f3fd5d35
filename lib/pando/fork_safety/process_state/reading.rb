# frozen_string_literal: true

require "fcntl"
require "pando/fork_safety/process_state/names"
require "pando/fork_safety/process_state/value"

module Pando
  module ForkSafety
    class ProcessState
      # Asks the kernel about this process. Values that the kernel does not reveal are missing.
      module Reading
        # Positions in /proc/self/stat, after the name.
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

          # Values that another process can also change, and read.
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
            "" # after a chroot there may be no /proc
          end

          def link(name)
            path = "/proc/self/#{name}"
            file(path, File.readlink(path))
          rescue SystemCallError
            nil # forbidden even to this process, once it has given up its user id
          end

          def lines(status)
            Names::LINES.transform_values { |name| Value.new(field(status, name).split.join(" ")) }
          end

          def field(status, name) = status[/^#{name}:[ \t]*(.*)$/, 1].to_s

          # Signals whose handling is not the kernel's default.
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

          # Of the main thread, which forks.
          def priority(process)
            fields = File.read("/proc/#{process}/stat").rpartition(")").last.split
            level, policy = fields.values_at(*SCHEDULING)
            { "nice" => Value.new(fields.fetch(NICE)), "scheduling" => Value.new("level #{level}, policy #{policy}") }
          rescue SystemCallError
            {}
          end

          # By number, because the app may have replaced $stdout and the like.
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
