# frozen_string_literal: true

require "etc"
require "objspace"
require "pando/doctor/subject/instruments"
require "pando/fork_safety/audit"
require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/pid_constants"
require "pando/server/allocator"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    module Subject
      # Finds constants that hold a pid, which is wrong in a child. The line that sets the constant must mention a pid,
      # so that a number is not taken for one by coincidence.
      module PidConstants
        ASKS_FOR_A_PID = /\bpid\b|\$\$|\$PROCESS_ID/
        LONGEST = 500 # bytes of a text
        STATEMENT = 3 # lines

        class << self
          # @return [Array<Hash>] name, location, and text: whether the value is a String
          def holding(pids)
            found = ForkSafety::PidConstants.holding(pids, longest: LONGEST).select { |one| asks_for_a_pid?(one) }
            found.map { |one| { name: one.full_name, location: one.location, text: one.text? } }.uniq
          end

          private

          def asks_for_a_pid?(one)
            lines = File.foreach(one.file).lazy.drop(one.line - 1).first(STATEMENT)
            lines.any? { |text| text.scrub.match?(ASKS_FOR_A_PID) }
          rescue SystemCallError
            false
          end
        end
      end

      # What an examined process reports about itself: its IO objects with the lines that made them, threads, random
      # number generators, locks that other threads hold, signal handlers. The doctor itself looks at the descriptors,
      # from outside.
      class Snapshot
        # Seconds between two looks at the locks: only a lock that is held at both counts.
        LOCK_HELD = 0.02
        DRAWN = 16 # bytes that tell one state of a generator from another

        # @param own [Array<Integer>] descriptors of Pando and the doctor
        # @param own_tasks [Array<Integer>] ids of threads that ran before the application was loaded
        # @param allowed [#call] whether a thread may be lost
        def initialize(own, own_tasks, allowed)
          @own = own
          @own_tasks = own_tasks
          @allowed = allowed
        end

        # Ruby remembers from now on which line makes an object.
        def self.trace_origins = ObjectSpace.trace_object_allocations_start

        # @param everything [Boolean] with constants, which takes longer: only one worker of a generation does it
        def take(everything)
          { pid: Process.pid, ancestors: Instruments.pids, own: @own, ios: ios, threads: threads, natives: natives,
            locks: locks, generators: generators, traps: traps, caught: caught,
            constants: everything ? PidConstants.holding(Instruments.pids - [Process.pid]) : [] }
        end

        # @return [Hash{String => Integer}] number of open IOs by the line that made them
        def io_counts = ios.map { |io| io[:location].to_s }.tally

        def ios
          tls = tls_sockets
          folders + ObjectSpace.each_object(IO).filter_map do |io|
            number = ForkSafety::Descriptors.number(io)
            next if number.nil? || @own.include?(number)

            { number: number, type: io.class.name, location: origin(io), tls: tls.include?(number),
              ended: ended?(io), library: (ForkSafety::Audit::ForkAware.library([io]) if io.is_a?(BasicSocket)) }
          end
        end

        private

        # @return [String, nil] "file:line" of the line that made the object, if Ruby remembers
        def origin(object)
          file = ObjectSpace.allocation_sourcefile(object)
          file && "#{file}:#{ObjectSpace.allocation_sourceline(object)}"
        end

        def folders
          ObjectSpace.each_object(Dir).filter_map do |one|
            { number: one.fileno, type: "Dir", location: origin(one), tls: false, ended: false }
          rescue IOError
            nil # closed
          end
        end

        def tls_sockets
          return [] unless defined?(::OpenSSL::SSL::SSLSocket)

          ObjectSpace.each_object(::OpenSSL::SSL::SSLSocket).filter_map do |one|
            one.to_io.fileno
          rescue IOError
            nil
          end
        end

        # A socket whose peer has hung up: nobody will read from it.
        def ended?(io)
          io.is_a?(BasicSocket) && [nil, ""].include?(io.recv_nonblock(1, Socket::MSG_PEEK, exception: false))
        rescue SystemCallError, IOError
          false # not connected at all, or Ruby has read something that the application has not
        end

        def threads
          ForkSafety::Audit::LiveThread.all.map do |one|
            thread = one.thread
            { location: ForkSafety::Audit::LiveThread.site(thread) || origin(thread), name: thread.name, **loss(one) }
          end
        end

        # The message if the thread is lost, or that losing it is excused.
        def loss(one)
          one.excuse || @allowed.call(one) ? { excused: true } : { message: one.origin.message, advice: one.advice }
        end

        # Threads that C code started. Ruby keeps native threads for reuse, which belong to no Thread: they are excused.
        def natives
          others = ForkSafety::Audit::NativeThread.all.reject { |one| one.excuse || @own_tasks.include?(one.id) }
          others.map(&:comm)
        end

        # Locks that are held by a thread which a child will not have.
        def locks
          return [] if Thread.list.one?

          held = held_by_others
          return [] if held.empty?

          sleep(LOCK_HELD)
          (held & held_by_others).map { |lock| { type: lock.class.name, location: origin(lock) } }
        end

        def held_by_others
          mutexes = ObjectSpace.each_object(Thread::Mutex).select { |one| one.locked? && !one.owned? }
          return mutexes unless defined?(::Monitor)

          mutexes + ObjectSpace.each_object(::Monitor).select { |one| one.mon_locked? && !one.mon_owned? }
        end

        def generators
          ObjectSpace.each_object(Random).filter_map do |one|
            next if standard?(location = origin(one))

            { id: one.__id__, state: one.dup.bytes(DRAWN).unpack1("H*"), location: location }
          end
        end

        # Ruby's own, such as tmpdir.rb's, which tries again when a name is taken.
        def standard?(location)
          location.nil? || [*Instruments::STANDARD, Instruments::LIBRARY].any? { |folder| location.start_with?(folder) }
        end

        def traps
          { loaded: (Instruments.loaded_traps || {}).values.map(&:to_h), now: Instruments.traps.values.map(&:to_h) }
        end

        def caught = File.read("/proc/self/status")[/^SigCgt:\s*(\h+)/, 1].to_s
      end
    end

    # What this kernel and this Ruby offer for sharing memory and for checking forks. Asked once, in the first mold.
    module Features
      PAGEMAP_SCAN = 0xc0606610 # an ioctl of Linux 6.7

      module_function

      def all
        { kernel: File.read("/proc/sys/kernel/osrelease").chomp, ruby: RUBY_DESCRIPTION,
          yjit: YJIT.enabled?, zjit: YJIT.displaced?, jemalloc: jemalloc, libc: libc,
          pidfd: works? { Sys.close_fd(Sys.pidfd_open(Process.pid)) },
          kcmp: works? { Sys.open_file_shared?(Process.pid, 0, Process.pid, 0) },
          pagemap_scan: pagemap_scan?, userfaultfd: userfaultfd?, populate_write: Sys::HotSet.supported?,
          process_warmup: Process.respond_to?(:warmup), cpus: Etc.nprocessors }
      end

      # @return [String] the version in use, or why jemalloc is not in use
      def jemalloc
        version = Sys.jemalloc and return version[/\A[\d.]+/]
        obstacle = Server::Allocator.new(:auto, loaded: nil).obstacle
        "no#{": #{obstacle}; with one, workers share more (docs/sharing.md)" if obstacle}"
      end

      def libc
        return "musl" if File.read("/proc/self/maps").include?("ld-musl")

        version = Etc.confstr(Etc::CS_GNU_LIBC_VERSION)&.split&.last
        version ? "glibc #{version}" : "glibc"
      rescue SystemCallError, NameError
        "glibc"
      end

      def works?
        yield
        true
      rescue SystemCallError
        false
      end

      # A kernel that knows the ioctl refuses an argument of zeros with EINVAL, any other with ENOTTY.
      def pagemap_scan?
        File.open("/proc/self/pagemap") { |file| file.ioctl(PAGEMAP_SCAN, "\0" * 96) }
        true
      rescue Errno::ENOTTY, Errno::ENOENT, Errno::EACCES, Errno::EPERM
        false
      rescue SystemCallError
        true
      end

      def userfaultfd? = File.exist?("/proc/sys/vm/unprivileged_userfaultfd") || File.exist?("/dev/userfaultfd")
    end
  end
end
