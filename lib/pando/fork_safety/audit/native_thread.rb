# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/libraries"
require "pando/sys/mapping"
require "rbconfig"

module Pando
  module ForkSafety
    module Audit
      # Finds the shared object that a thread of this process belongs to, from the addresses on its stack. The
      # outermost address that is not in the C library is where the thread began.
      class ThreadStack
        # The most bytes of a stack to read, and words of the record at its base.
        DEPTH = 524_288
        RECORD = 400
        # A thread may be running when this class looks at it.
        TRIES = 3
        # The C library and the loader start every thread, so they identify none.
        COMMON = %r{/(?:libc|libpthread|ld-linux|ld-musl|libm|libstdc\+\+|libgcc_s|libdl)[-.\w]*\.so|\[vdso\]}
        RUBY = %r{/libruby[-.\w]*\.so}
        private_constant :DEPTH, :RECORD, :TRIES, :COMMON, :RUBY

        def initialize
          @code = @stacks = @ruby = []
          mappings = Sys::Mapping.parse(File.read("/proc/self/maps"))
          @code = mappings.select { |one| one.code? && !one.anonymous? }
          @stacks = mappings.select { |one| one.rights == "rw-p" }
          @lowest = @code.map(&:from).min
          @highest = @code.map(&:to).max
          @ruby = [File.realpath("/proc/self/exe"), "#{RbConfig::CONFIG["rubyarchdir"]}/"]
        rescue SystemCallError
          nil
        end

        # @return [String, nil] path of the object; nil: the thread is running, or the object is unknown
        def object(id)
          pointer = pointer(id)
          stack = pointer && @stacks.find { |one| one.cover?(pointer) }
          stack && outermost(words(pointer, stack.to), pointer)
        rescue SystemCallError
          nil
        end

        # @return [Boolean] whether it is Ruby: a timer, a JIT worker, or a thread kept for the next Thread.new
        def ruby?(object) = !object.nil? && (RUBY.match?(object) || object.start_with?(*@ruby))

        private

        # The stack pointer, which the kernel shows for threads that wait (proc(5)).
        def pointer(id)
          TRIES.times do
            fields = File.read("/proc/self/task/#{id}/syscall").split
            return fields[-2].hex if fields.size > 2
          end
          nil
        end

        def words(pointer, base)
          length = [base - pointer, DEPTH].min
          File.open("/proc/self/mem", "rb") { |memory| memory.pread(length - (length % 8), pointer) }.unpack("Q*")
        end

        # At the base lies the C library's record of the thread, with the function in which it began. On some
        # processors the record begins with its own address, twice. The mapping may extend far beyond it.
        def outermost(words, pointer)
          record = (0..(words.size - 3)).find { |at| words[at] == pointer + (at * 8) && words[at + 2] == words[at] }
          words = words.first(record + RECORD) if record
          words.reverse_each do |word|
            next if word < @lowest || word >= @highest

            code = @code.find { |one| one.cover?(word) }
            return code.name if code && !COMMON.match?(code.name)
          end
          nil
        end
      end

      # A thread of this process that Ruby did not start: it belongs to a native library. No child has it,
      # and a lock that it holds at the fork stays locked there for ever.
      class NativeThread
        # A library, the names of its threads, its file, and why it is harmless that a child lacks its threads.
        Known = Struct.new(:name, :comm, :object, :excuse)
        PREPARED = "it prepares itself for a fork (pthread_atfork)"
        LIBRARIES = [
          Known.new("grpc", /\A(?:grpc|default-exec|resolver-exec|timer_manager|event_engine)/, /grpc/),
          Known.new("librdkafka", /\Ardk:/, /rdkafka/),
          Known.new("jemalloc", /\Ajemalloc_bg_thd/, /libjemalloc/, PREPARED),
          Known.new("libvips", /\A(?:libvips|vips|worker|sink_|background|wbuffer)/, /libvips/),
          Known.new("glib", /\A(?:gmain|gdbus|pool-|dconf)/, /libg(?:lib|io)-/),
          Known.new("libuv", /\Alibuv-/, /libuv/),
          Known.new("OpenBLAS", /\Aopenblas/i, /openblas/, PREPARED),
          Known.new("OpenMP", /\Aomp/i, /lib(?:gomp|omp|iomp5)/),
          Known.new("libcurl", /\Acurl/i, /libcurl/),
          Known.new("V8", /\A(?:V8 |libv8|node)/, /(?:mini_racer|libv8|libnode)/),
          Known.new("ZeroMQ", /\AZMQbg/, /libzmq/),
          Known.new("Rust's tokio", /\Atokio/, nil),
          Known.new("datadog", /\Add(?:prof|trace|_)/, /(?:ddtrace|datadog|libdatadog)/)
        ].each(&:freeze).freeze
        TASKS = "/proc/self/task"
        # Seconds to look again at threads that are running, and between two looks.
        PATIENCE = 0.5
        PAUSE = 0.001
        # If the stack does not identify a thread, its name may. A thread with the name of the process, or with one that
        # Ruby gives ("file.rb:7", or "long_file_nam*" if that has more than 15 bytes), is most likely Ruby's.
        RUBYS_NAME = /:\d*\z|\A.{14}\*\z/
        private_constant :Known, :PREPARED, :LIBRARIES, :TASKS, :PATIENCE, :PAUSE, :RUBYS_NAME

        class << self
          # @return [Array<NativeThread>] without Ruby's own threads, and those that end meanwhile
          def all
            rubys = Thread.list.filter_map(&:native_thread_id)
            strangers = Dir.children(TASKS).map(&:to_i) - rubys
            return [] if strangers.empty?

            stacks = ThreadStack.new
            settled(strangers.filter_map { |id| find(id, stacks) }, stacks)
          rescue SystemCallError
            []
          end

          private

          def find(id, stacks)
            comm = File.read("#{TASKS}/#{id}/comm").chomp.scrub("?")
            object = stacks.object(id)
            new(id, comm, object) unless object ? stacks.ruby?(object) : rubyish?(comm)
          rescue SystemCallError
            nil # it has ended
          end

          # A thread that Ruby has just ended still runs for a moment, under its own name. Then it is gone, or Ruby
          # keeps it for the next Thread.new, which its stack shows.
          def settled(threads, stacks)
            deadline = Sys.now + PATIENCE
            while !threads.all?(&:object) && Sys.now < deadline
              sleep(PAUSE)
              threads = threads.filter_map { |thread| thread.object ? thread : find(thread.id, stacks) }
            end
            threads
          end

          def rubyish?(comm) = comm == File.read("/proc/self/comm").chomp.scrub("?") || comm.match?(RUBYS_NAME)
        end

        # @return [Integer] the kernel's id
        attr_reader :id
        # @return [String] what it calls itself, at most 15 bytes (PR_SET_NAME, prctl(2))
        attr_reader :comm
        # @return [String, nil] the shared object in which its stack begins
        attr_reader :object

        def initialize(id, comm, object)
          @id = id
          @comm = comm
          @object = object
          file = File.basename(object) if object # better evidence than a name
          @known = LIBRARIES.find { |known| file ? known.object&.match?(file) : known.comm.match?(comm) }
        end

        # @return [String, nil] the library, if known
        def library = @known&.name || (object && File.basename(object))

        # @return [String, nil] why its loss is harmless
        def excuse
          return @known.excuse if @known&.excuse

          "#{library} ends it before a fork" if Libraries.ends_native_thread?(library, comm)
        end

        def label = ["native thread #{comm.sub(/\d+\z/, "").inspect}", *("of #{library}" if library)].join(" ")

        def finding
          return if excuse

          message = "A #{label} is running: no forked process has it, and a lock that it holds stays locked there"
          Finding.new(:native_thread, subject: label, message: message, details: to_h)
        end

        def to_h = { type: :native, comm: comm, library: library, object: object, excuse: excuse }.compact
      end
    end
  end
end
