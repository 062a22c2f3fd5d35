# frozen_string_literal: true

require "fcntl"
require "pando/fork_safety/finding"
require "pando/fork_safety/streams"
require "pando/sys/process_stat"

module Pando
  module ForkSafety
    # What the kernel keeps of a process besides its memory, and each fork hands down: its directory, umask, user and
    # limits, its signal handling, its first three descriptors; and its environment. Pando compares two states. The
    # younger one comes from the process of the older one, or from a descendant of it.
    #
    # A state holds no contents of environment variables, which may be secrets, but a digest of each.
    module ProcessState
      class << self
        # @return [Hash{String => Value}] the state of this process, by name
        def take = Reading.all.freeze

        # @return [Array<Change>] from an older state to a younger one
        def changes(from, to)
          (from.keys | to.keys).filter_map { |key| Change.new(key, from[key], to[key]) unless from[key] == to[key] }
        end
      end

      # One difference between two states of a process.
      class Change
        SIGNAL = "signal "
        LENGTH = 100 # the most characters of a name or a value to show
        private_constant :SIGNAL, :LENGTH

        # @return [String] what changed: "umask", "env TZ", "limit open files", "signal PIPE", ...
        attr_reader :key

        # @param from [Value, nil] @param to [Value, nil] nil: it does not exist
        def initialize(key, from, to)
          @key = key
          @from = from
          @to = to
        end

        def root? = key == "root"

        # @return [Boolean] the other process has the same value
        def shared?(others) = !@to.nil? && others[key] == @to

        # @return [Boolean] a child of this process can restore it without side effects
        def restorable?
          case key
          when "umask" then !@from.nil?
          when "directory" then !@from.nil? && Reading.file(@from.words) == @from
          else false
          end
        end

        # Restores the former value, in the child.
        def put_back
          key == "umask" ? File.umask(@from.words.oct) : Dir.chdir(@from.words)
        end

        # @return [Boolean] whether libraries make such changes on first use and remember it. If several workers make
        #   the change, each needs it. See Cluster::Generations::ChangedState
        def customary?
          variable? || (signal? && [@from, @to].none?(Reading::IGNORED))
        end

        # Equal in all processes of one boot that made the same change. It reveals nothing about the value.
        def token = [key, @to&.identity].hash.abs.to_s(16)

        def match?(pattern) = Names.match?(key, pattern)

        # @return [String] the key, safe to print
        def name = shown(key)

        # @return [String] "umask 0022 -> 0777"; for a variable without contents
        def to_s
          return "#{name} #{words(@from)} -> #{words(@to)}" unless variable?

          "ENV[#{name.delete_prefix(Names::VARIABLE).inspect}] #{@from.nil? ? "set" : (@to && "changed") || "deleted"}"
        end

        def finding
          Finding.new(:changed_state, subject: name, severity: (:warning if customary? || restorable?),
                                      message: "The app changed its process while it served requests: #{self}",
                                      advice: "#{Finding::KINDS.fetch(:changed_state).advice} To accept the " \
                                              "change, set fork_safety state: { allow: [#{name.inspect}] }.")
        end

        private

        def variable? = key.start_with?(Names::VARIABLE)
        def signal? = key.start_with?(SIGNAL)

        def words(value)
          return shown(value.words) if value

          signal? ? "default" : "unknown"
        end

        def shown(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[^[:print:]]/, "?")[0, LENGTH]
      end

      # The names of the parts of a process's state, in events and in `fork_safety state: { allow: [...] }`.
      module Names
        # Signals that each process of the server sets after each fork (Cluster::Role, HTTP::SoftTimeout, Swarm::JobHandler),
        # that its profilers use, or that belong to Ruby or the C library.
        OURS = %w[INT HUP TERM QUIT USR1 USR2 TTIN TTOU CHLD CLD URG TSTP PROF VTALRM].freeze
        C_LIBRARY = [32, 33].freeze
        SIGNALS = (1..64).to_h { |number| [number, Signal.signame(number) || number.to_s] }
                         .reject { |number, name| OURS.include?(name) || C_LIBRARY.include?(number) }
                         .transform_values { |name| "signal #{name}".freeze }.freeze
        STREAMS = { "stdin" => 0, "stdout" => 1, "stderr" => 2 }.freeze
        # Lines of /proc/self/status.
        LINES = { "umask" => "Umask", "user ids" => "Uid", "group ids" => "Gid", "groups" => "Groups",
                  "capabilities permitted" => "CapPrm", "capabilities effective" => "CapEff",
                  "capabilities bounding" => "CapBnd", "no new privileges" => "NoNewPrivs" }.freeze
        # Lines of /proc/self/limits.
        LIMIT = /^Max (.+?) {2,}(\S+) +(\S+)/
        OTHERS = %w[root directory nice scheduling].freeze
        # The prefix of an environment variable's name.
        VARIABLE = "env "
        private_constant :OURS, :C_LIBRARY, :OTHERS

        class << self
          def match?(name, pattern) = name == pattern || name.start_with?("#{pattern} ")

          # @return [Boolean] whether it can match anything
          def known?(pattern)
            pattern.start_with?(VARIABLE) || all.any? { |name| match?(name, pattern) }
          end

          # @return [Array<String>] all names; variables are represented by one example
          def all = [*OTHERS, *LINES.keys, *STREAMS.keys, *SIGNALS.values, *limits, "#{VARIABLE}NAME"]

          private

          def limits
            File.read("/proc/self/limits").scan(LIMIT).map { |name, *| "limit #{name}" }
          rescue SystemCallError
            []
          end
        end
      end

      # One value: the identity that is compared, and the words that are shown. A renamed file stays the same file.
      Value = Struct.new(:identity, :words) do
        def initialize(identity, words = identity)
          super
          freeze
        end

        def ==(other) = other.is_a?(self.class) && identity == other.identity
      end

      # Asks the kernel about this process. Values that the kernel does not reveal are missing.
      module Reading
        MODES = { File::RDONLY => "reading", File::WRONLY => "writing", File::RDWR => "reading and writing" }.freeze
        MODE = File::RDONLY | File::WRONLY | File::RDWR
        IGNORED = Value.new("ignored")
        HANDLED = Value.new("handled")
        CLOSED = Value.new("closed")
        private_constant :MODES, :MODE

        class << self
          def all
            status = status()
            { "root" => link("root"), "directory" => link("cwd"), **lines(status), **signals(status),
              **outside("self"), **streams, **environment }.compact
          end

          # Values that another process can also change, and read.
          def outside(process) = { **limits(process), **priority(process) }

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
            stat = Sys::ProcessStat.read(process) or return {}
            { "nice" => Value.new(stat.nice), "scheduling" => Value.new(stat.scheduling) }
          end

          # By number, because the app may have replaced $stdout and the like. Nobody can write to one that is closed in
          # Ruby only, nor fork: Ruby flushes it first.
          def streams
            objects = [nil, $stdout, $stderr]
            Names::STREAMS.transform_values do |number|
              Streams.prevents_fork?(objects[number]) ? CLOSED : stream(number)
            end
          end

          def stream(number)
            io = IO.for_fd(number, autoclose: false)
            stat = io.stat
            mode = MODES[io.fcntl(Fcntl::F_GETFL) & MODE]
            Value.new("#{stat.dev} #{stat.ino} #{mode}", "#{target(number)} (#{mode}, inode #{stat.ino})")
          rescue SystemCallError
            CLOSED
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
