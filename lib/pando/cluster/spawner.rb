# frozen_string_literal: true

require "pando/cluster/boot"
require "pando/cluster/link"

module Pando
  module Cluster
    # Orders new processes. For each it makes the link first and keeps one end,
    # so that a process that never reports is still noticed.
    #
    # @api private
    class Spawner
      # @param command [Array<String>] the executable and arguments of a cold mold
      # @param directory [String] where the monitor was started: a cold mold reads the same arguments
      def initialize(roster, poller, listeners, options, command)
        @roster = roster
        @poller = poller
        @listeners = listeners
        @options = options
        @command = command
      end

      # Generation 0, or any later cold boot: fork and exec of a clean image.
      # @return [Child, nil] nil when the kernel refused
      def cold_mold(generation)
        start(:mold, 0, generation, nil, @options.boot_timeout) do |child, their_end|
          value = Boot.value(Process.pid, child.seat, generation, @listeners.count)
          environment = ENV.to_h.merge(Boot::VARIABLE => value).map { |name, text| "#{name}=#{text}" }
          pid = Sys.spawn(@command, environment, [their_end, @roster.scoreboard, *@listeners])
          child.adopt(Sys::Pidfd.new(pid))
          @poller.add(child.pidfd, [:exit, child])
        end
      end

      # The worker forks it between two requests, however long the running one takes.
      def mold_from(worker, generation)
        patience = @options.spawn_timeout + (@options.longest_request || 0)
        fork_by(worker, :promote, :mold, 0, generation, patience)
      end

      def worker(mold, slot) = fork_by(mold, :spawn, :worker, slot, mold.generation, @options.spawn_timeout)
      def service(mold, index) = fork_by(mold, :spawn, :service, index, mold.generation, @options.spawn_timeout)

      private

      def fork_by(source, kind, role, slot, generation, patience)
        start(role, slot, generation, source, patience) do |child, their_end|
          order = Message.new(kind, role: role, seat: child.seat, slot: slot, generation: generation)
          raise Errno::EPIPE, "pid #{source.pid} takes no orders" unless source.order(order, [their_end])
        end
      end

      def start(role, slot, generation, source, patience)
        our_end, their_end = Link.pair
        child = @roster.admit(role, slot, generation, our_end, source)
        child.deadline = Sys.now + patience
        @poller.add(our_end, [:link, child])
        yield child, their_end
        child
      rescue SystemCallError, Pando::Error => e # the kernel's limits, or the scoreboard's
        Events.emit("spawn.failed", role: role, slot: slot, generation: generation, reason: e.message)
        child ? forget(child) : our_end&.close
        nil
      ensure
        their_end&.close
      end

      def forget(child)
        @poller.remove(child.link)
        @roster.dismiss(child)
      end
    end
  end
end
