# frozen_string_literal: true

require "pando/fork_safety/audit"
require "pando/doctor/subject/origins"
require "pando/doctor/subject/recorder"
require "pando/doctor/subject/constants"

module Pando
  module Doctor
    module Subject
      # What a process can say of itself: the IO objects and where they were made, its threads,
      # generators of numbers, locks that others hold, handlers of signals. The descriptors
      # themselves the doctor sees from outside.
      #
      # @api private
      class Snapshot
        FILENO = IO.instance_method(:fileno)
        # Between two looks at a lock: one that is held at both is held for long.
        A_MOMENT = 0.02
        DRAWN = 16 # bytes that tell one state of a generator from another

        # @param own [Array<Integer>] descriptors that are Pando's or the doctor's
        # @param own_tasks [Array<Integer>] threads that were there before the application
        # @param allowed [#call] whether a thread may be lost
        def initialize(own, own_tasks = [], allowed = ->(_) { false })
          @own = own
          @own_tasks = own_tasks
          @allowed = allowed
        end

        # @return [Hash{Symbol => Object}] what JSON knows
        def take
          { pid: Process.pid, ancestors: Recorder.pids, own: @own, ios: ios, threads: threads, natives: natives,
            locks: locks, generators: generators, traps: traps, constants: [], caught: caught }
        end

        # Takes longer, so not in each process.
        def take_all = take.merge(constants: Constants.holding(Recorder.pids - [Process.pid]))

        # @return [Hash{String => Integer}] how many IOs each line has open
        def io_counts = ios.map { |io| io[:location].to_s }.tally

        # @return [Array<Hash>]
        def ios
          tls = tls_sockets
          folders + ObjectSpace.each_object(IO).filter_map do |io|
            number = FILENO.bind_call(io)
            next if @own.include?(number)

            { number: number, type: io.class.name, location: Origins.of(io), tls: tls.include?(number),
              ended: ended?(io), library: (ForkSafety::Audit::ForkAware.library([io]) if io.is_a?(BasicSocket)) }
          rescue IOError
            nil
          end
        end

        private

        def folders
          ObjectSpace.each_object(Dir).filter_map do |one|
            { number: one.fileno, type: "Dir", location: Origins.of(one), tls: false, ended: false }
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

        # A socket whose other side has hung up: nothing is read from it any more.
        def ended?(io)
          io.is_a?(BasicSocket) && [nil, ""].include?(io.recv_nonblock(1, Socket::MSG_PEEK, exception: false))
        rescue SystemCallError
          false # not connected at all
        end

        def threads
          ForkSafety::Audit::LiveThread.all.map do |one|
            thread = one.thread
            { location: Origins.of_thread(thread), name: thread.name, status: thread.status.to_s,
              native: (thread.native_thread_id if thread.respond_to?(:native_thread_id)), **words(one) }
          end
        end

        # What is to be said if it is lost; nothing where that does not matter.
        def words(one)
          one.excuse || @allowed.call(one) ? { excused: true } : { message: one.origin.message, advice: one.advice }
        end

        # The threads that are not Ruby's: it keeps ended ones for their next use, which belong to no Thread.
        def natives
          others = ForkSafety::Audit::NativeThread.all.reject { |one| one.excuse || @own_tasks.include?(one.id) }
          others.map(&:comm)
        end

        # Held by a thread that a child will not have.
        def locks
          return [] if Thread.list.one?

          held = held_by_others
          return [] if held.empty?

          sleep(A_MOMENT)
          (held & held_by_others).map { |lock| { type: lock.class.name, location: Origins.of(lock) } }
        end

        def held_by_others
          mutexes = ObjectSpace.each_object(Thread::Mutex).select { |one| one.locked? && !one.owned? }
          return mutexes unless defined?(::Monitor)

          mutexes + ObjectSpace.each_object(::Monitor).select { |one| one.mon_locked? && !one.mon_owned? }
        end

        def generators
          ObjectSpace.each_object(Random).filter_map do |one|
            next if standard?(location = Origins.of(one))

            { id: one.__id__, state: one.dup.bytes(DRAWN).unpack1("H*"), location: location }
          end
        end

        # tmpdir.rb has one: it tries again when a name is taken.
        def standard?(location)
          location.nil? || [*Recorder::STANDARD, Recorder::LIBRARY].any? { |folder| location.start_with?(folder) }
        end

        def traps
          { loaded: (Recorder.loaded_traps || {}).values.map(&:to_h), now: Recorder.traps.values.map(&:to_h) }
        end

        # @return [String] the kernel's mask of signals that have a handler
        def caught = File.read("/proc/self/status")[/^SigCgt:\s*(\h+)/, 1].to_s
      end
    end
  end
end
