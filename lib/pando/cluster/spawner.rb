# frozen_string_literal: true

require "pando/cluster/boot"
require "pando/cluster/cold_boot_command"
require "pando/cluster/link"
require "pando/cluster/oom_score"
require "pando/cluster/open_files"

module Pando
  module Cluster
    # Orders new processes. It makes the link of each first and keeps one end, so that the monitor notices a process
    # that never reports. Owned by a Pool, in the monitor.
    class Spawner
      include Brief

      # The command that becomes the mold of a cold boot.
      attr_writer :command
      # @return [String, nil] why the last process could not be ordered
      attr_reader :refusal

      # @param pool [String, nil] its name, if there are several
      def initialize(roster, poller, listeners, options, command, lanes, pool: nil)
        @roster = roster
        @poller = poller
        @listeners = listeners
        @options = options
        @command = command
        @lanes = lanes
        @pool = pool
      end

      # Boots a mold from cold, by fork and exec of a clean image.
      # @param command [ColdBootCommand] of another release @param listeners [Array<Listener>] likewise
      # @return [Child, nil] nil when the kernel refused
      def cold_mold(generation, command = @command, listeners = @listeners.to_a)
        start(:mold, 0, generation, nil, @options.boot_timeout) do |child, their_end|
          others = @lanes.descriptors
          value = Boot.value(Process.pid, child.seat, generation, listeners, others.size, @pool)
          environment = { **command.environment, Boot::VARIABLE => value }.map { |name, text| "#{name}=#{text}" }
          descriptors = [their_end, @roster.scoreboard, *listeners, *others]
          pid = Sys.spawn(command.command, environment, descriptors, Boot::LINK, OpenFiles.given)
          watch(child, pid)
        end
      end

      # Instead of a cold boot: forks the mold from one of the first pool.
      def mold_beside(origin, generation)
        fork_by(origin, :spawn, :mold, 0, generation, @options.boot_timeout, text: @pool)
      end

      # The worker forks it between two requests, however long the running one takes. If the worker has just ended, the
      # mold stays ordered until the monitor notices, and Promotion asks another worker.
      # @param within [Float, nil] seconds after which a worker refuses, if its jobs have not ended
      def mold_from(worker, generation, within = nil)
        patience = @options.spawn_timeout + (within || @options.longest_request || 0)
        fork_by(worker, :promote, :mold, 0, generation, patience, number: within&.ceil || 0)
      end

      def reactor(setup)
        start(:reactor, 0, 0, nil, @options.spawn_timeout, Reactor::Message) do |child, their_end|
          pid = titled("pando reactor") { setup.start([*@listeners, *@listeners.leaving], their_end, @options.grace) }
          OOMScore.set(:reactor, @options.oom_score_adj, monitor: "self", pid: pid)
          child.row.claim(Roster::ROLES.index(:reactor), 0, 0)
          watch(child, pid)
        end
      end

      def room_beside?(mold) = @lanes.room?(mold.threads)

      def worker(mold, slot) = fork_by(mold, :spawn, :worker, slot, mold.generation, @options.spawn_timeout)

      def service(mold, index, notes)
        fork_by(mold, :spawn, :service, index, mold.generation, @options.spawn_timeout, notes: notes)
      end

      # Cancels an order. The forker drops it when it finds the link closed; a process that was forked meanwhile ends.
      def cancel(child)
        @poller.remove(child.link) unless child.link.closed?
        @poller.remove(child.pidfd) if child.pidfd
        @roster.dismiss(child)
      end

      private

      # No Ruby runs in the reactor, so it inherits its title from the monitor.
      def titled(title)
        Process.setproctitle(title)
        yield
      ensure
        Process.setproctitle(Monitor::TITLE)
      end

      # A process that the monitor cannot watch is killed, and reaped as an orphan.
      def watch(child, pid)
        child.adopt(Sys::Pidfd.new(pid))
        @poller.add(child.pidfd, [:exit, child])
      rescue SystemCallError
        Process.kill(:KILL, pid)
        raise
      end

      # @param number [Integer] of an order that hands over no lane, see Message
      def fork_by(source, kind, role, slot, generation, patience, text: "", number: 0, notes: nil)
        start(role, slot, generation, source, patience) do |child, their_end|
          child.expect(their_end, @options.check_timeout && (Sys.now + @options.check_timeout))
          lane = (open_lanes(child) if role == :worker)
          order = Message.new(kind, role: role, seat: child.seat, slot: slot, generation: generation,
                                    lane: lane&.number || number, text: text)
          sent = source.order(order, [their_end, *notes, *lane&.for_worker])
          lane&.hand_over
          raise Errno::EPIPE, "pid #{source.pid} takes no orders" unless sent || (source.worker? && source.link.lost?)
        end
      end

      # The lanes of further threads wait on the worker's own link until it reads them.
      # @return [Reactor::Lane, nil] that of its first thread; nil in direct mode
      def open_lanes(child)
        first, *others = @lanes.open_for(child)
        others.each do |lane|
          sent = child.order(Message.new(:lane, lane: lane.number), lane.for_worker)
          lane.hand_over
          raise Errno::ENOBUFS, "a worker's lanes" unless sent
        end
        first
      end

      def start(role, slot, generation, source, patience, records = Message)
        our_end, their_end = Link.pair(records)
        child = @roster.admit(role, slot, generation, our_end, source)
        child.deadline = Sys.now + patience
        @poller.add(our_end, [:link, child])
        yield child, their_end
        child
      rescue SystemCallError, Pando::Error => e # the kernel's limits, or the scoreboard's
        @refusal = OpenFiles.explain(e)
        Events.emit("spawn.failed", role: role, slot: slot, generation: generation, reason: refusal)
        child ? cancel(child) : our_end&.close
        nil
      ensure
        their_end&.close
      end
    end
  end
end
