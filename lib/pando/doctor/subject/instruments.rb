# frozen_string_literal: true

require "fcntl"
require "pando/fork_safety/file_time"
require "pando/sys"

module Pando
  module Doctor
    module Subject
      # Wraps methods of Ruby to learn what it keeps no list of: the line that trapped a signal, at_exit handlers that
      # run in a process that did not register them, files that a finalizer or such a handler deletes. Installed in the
      # examined processes before the application is loaded.
      module Instruments
        LIBRARY = "#{File.expand_path("../../..", __dir__)}/".freeze
        STANDARD = RbConfig::CONFIG.values_at("rubylibdir", "archdir").compact.freeze
        # Frames of Pando and of Ruby itself are never the cause.
        FOREIGN = [LIBRARY, "<internal:"].freeze

        # The last handler of a signal; `ours`: Pando set it.
        Trap = Struct.new(:signal, :location, :ours)

        @traps = {}
        @pids = []

        class << self
          # @return [Hash{String => Trap}] by the name of the signal: now, and when the application had been loaded
          attr_reader :traps, :loaded_traps
          # @return [Array<Integer>] this process and its ancestors, the oldest first
          attr_reader :pids
          # @return [Symbol, nil] :leaving or :collecting while objects end
          attr_accessor :phase

          def install(wire)
            @wire = wire
            @born = ForkSafety::FileTime.now
            enter
            [Kernel.singleton_class, Signal.singleton_class].each { |one| one.prepend(Traps) }
            Kernel.singleton_class.prepend(ExitHandlers)
            # Kernel's instance methods are private.
            Kernel.prepend(Traps.dup.tap { |copy| copy.send(:private, :trap) })
            Kernel.prepend(ExitHandlers.dup.tap { |copy| copy.send(:private, :at_exit) })
            File.singleton_class.prepend(deletions(:unlink, :delete))
            Dir.singleton_class.prepend(deletions(:rmdir, :unlink, :delete))
          end

          # In a new process.
          def enter
            @pids |= [Process.pid]
            @inherited = @forking # older files were made by an ancestor
            @phase = nil
          end

          # In a process that is about to fork.
          def forking = @forking = ForkSafety::FileTime.tick

          def application_loaded = @loaded_traps = @traps.dup

          def trapped(signal, handler, caller_location)
            return unless (name = name_of(signal))

            location = handler.is_a?(Proc) ? handler.source_location&.join(":") : caller_location
            @traps[name] = Trap.new(name, location || caller_location, ours?(location || caller_location))
          end

          def exit_handler_ran(location, registered_in)
            return if registered_in == Process.pid

            @wire.tell(record: :exit_handler, location: location, pid: Process.pid)
          end

          # Called before the deletion. Reports a file that an ancestor made, if an object or the process is ending.
          def deleting(path)
            return unless @phase && @pids.size > 1 && (@born...@inherited).cover?(ForkSafety::FileTime.made(path))

            @wire.tell(record: :deletion, path: File.expand_path(path), location: place, pid: Process.pid)
          rescue SystemCallError, TypeError
            nil
          end

          # @return [String, nil] the line of the nearest frame that is neither Pando's nor Ruby's own
          def place(frames = caller_locations(2))
            lines = frames.reject { |one| FOREIGN.any? { |folder| one.path.start_with?(folder) } }
            best = lines.find { |one| STANDARD.none? { |folder| one.path.start_with?(folder) } } || lines.first
            best && "#{best.absolute_path || best.path}:#{best.lineno}"
          end

          private

          # A module with these methods, which report what they delete.
          def deletions(*names)
            Module.new do
              names.each do |name|
                define_method(name) do |*paths|
                  paths.each { |path| Instruments.deleting(path) }
                  super(*paths)
                end
              end
            end
          end

          def ours?(location) = location.nil? || location.start_with?(LIBRARY)

          def name_of(signal)
            signal = Signal.signame(signal) if signal.is_a?(Integer)
            signal&.to_s&.delete_prefix("SIG")
          rescue ArgumentError
            nil
          end
        end

        # For Kernel and Signal.
        module Traps
          def trap(signal, *command, &block)
            super.tap { Instruments.trapped(signal, command.first || block, Instruments.place(caller_locations(1))) }
          end
        end

        # For Kernel.
        module ExitHandlers
          def at_exit(&block)
            return super unless block

            owner = Process.pid
            location = block.source_location&.join(":")
            guarded = ExitHandlers.knows_its_process?(block)
            super do
              Instruments.exit_handler_ran(location, owner) unless guarded
              block.call
            end
          end

          # A block that asks for a pid can tell in which process it runs.
          def self.knows_its_process?(block)
            code = RubyVM::InstructionSequence.of(block)
            code.nil? || code.disasm.match?(/mid:pid\b|getspecial|\$\$/)
          rescue StandardError
            false
          end
        end
      end

      # Finds the lines that make threads and descriptors in C code, for which there is no Ruby object: after each call
      # of a C method it looks whether there is a new one. That is slow, so the doctor starts a second stage for it, and
      # only if the first one has found such a thing.
      class NativeTrace
        TASKS = "/proc/self/task"

        def initialize(wire)
          @wire = wire
          @probe = File.open(File::NULL)
          @known = tasks
          @open = Sys.descriptor_targets
          @free = next_free
        end

        def start
          TracePoint.new(:c_return) { |point| check(point) }.enable
          nil
        end

        private

        def check(point)
          # The number of links takes one call; the names are read only when it has changed.
          links = File.stat(TASKS).nlink
          note_tasks(point) if links != @links
          @links = links
          free = next_free
          note_descriptors(point) if free != @free
          @free = next_free
        end

        def note_tasks(point)
          now = tasks
          ruby = Thread.list.map(&:native_thread_id)
          (now - @known - ruby).each do |task|
            @wire.tell(origin: :thread, comm: comm(task), location: place(point))
          end
          @known = now
        end

        def note_descriptors(point)
          now = Sys.descriptor_targets
          now.each do |number, link|
            next if @open[number] == link

            @wire.tell(origin: :descriptor, link: link.sub(/\d+/, ""), number: number, location: place(point))
          end
          @open = now
        end

        def place(point)
          Instruments.place(caller_locations(3)) || "#{point.path}:#{point.lineno}"
        end

        def tasks = Dir.children(TASKS).map(&:to_i)
        def comm(task) = File.read("#{TASKS}/#{task}/comm").chomp

        # The smallest free number shows whether a descriptor was opened or closed.
        def next_free
          number = @probe.fcntl(Fcntl::F_DUPFD, 0)
          Sys.close_fd(number)
          number
        end
      end
    end
  end
end
