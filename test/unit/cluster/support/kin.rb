# frozen_string_literal: true

require "pando/cluster/monitor"
require_relative "fakes"

module ClusterSupport
  # Stands in for Pools: records what has happened to a child, and removes lost ones from the roster. It refuses news
  # that ChildEvents would not understand.
  class Registrar < Recorder
    def initialize(roster)
      super()
      @roster = roster
    end

    def tell(child, news, *details, **more)
      raise NoMethodError, "ChildEvents has no #{news}" unless Pando::Cluster::ChildEvents.public_method_defined?(news)

      public_send(news, child, *details, **more)
      @roster.dismiss(child) if %i[child_lost fork_failed].include?(news)
    end
  end

  # Real children on real links. A real inbox reads their reports.
  module Kin
    Link = Pando::Cluster::Link
    Message = Pando::Cluster::Message
    PATIENCE = 60 # seconds

    # Takes the questions of services.
    Welcome = Struct.new(:questions) do
      def welcome(socket, service) = questions << [socket.tap(&:close), service]
    end

    def setup
      super
      @roster = ClusterSupport.roster
      @poller = Pando::Sys::Poller.new
      @observer = Registrar.new(@roster)
      @control = Welcome.new([])
      @inbox = Pando::Cluster::Inbox.new(@roster, @poller, @observer, @control)
      @pids = []
      @stay = IO.pipe
    end

    # Called in a child or grandchild: lives until the test is over.
    def stay
      @stay.last.close
      @stay.first.read
    ensure
      exit!(0)
    end

    def teardown
      @stay.each(&:close)
      @pids.each do |pid|
        Process.kill(:KILL, pid)
        Process.wait(pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end
      @roster.to_a.each { |child| @roster.dismiss(child) }
      @poller.close
      super
    end

    # Ordered, not yet forked.
    # @return [Child, Link] the monitor's child object, and the other end of its link
    def order(role = :worker, slot: 0, generation: 0, source: nil)
      ours, theirs = Link.pair
      child = @roster.admit(role, slot, generation, ours, source)
      @poller.add(ours, [:link, child])
      [child, theirs]
    end

    # Forks a process that runs the block with its end of the link and then stays alive.
    # @return [Child]
    def born(role = :worker, **options)
      child, theirs = order(role, **options)
      @pids << fork do
        yield theirs if block_given?
        stay
      ensure
        exit!(0)
      end
      theirs.close
      child
    end

    # An adopted child, which runs the block.
    def adopted(role = :worker, **options)
      child = born(role, **options) do |link|
        link.send(Message.new(:adopted))
        yield link if block_given?
      end
      hear(child) until child.pidfd
      child
    end

    # Waits until the child has sent something, and reads it.
    def hear(child)
      assert child.link.to_io.wait_readable(PATIENCE), "nothing came over the link"
      @inbox.read(child)
    end

    # Waits until the process has ended, without reaping it.
    def ended(child)
      Pando::Sys::Poller.new.add(child.pidfd, true).then do |poller|
        deadline = Pando::Sys.now + PATIENCE
        ready = poller.wait(PATIENCE)
        ready = poller.wait(PATIENCE) while ready.empty? && Pando::Sys.now < deadline # another child ended
        refute_empty ready
        poller.close
      end
    end

    def told(name) = @observer.calls.select { |call| call.first == name }
    def watched?(io) = error_name { @poller.add(io, :probe) && @poller.remove(io) } == "Errno::EEXIST"

    def error_name
      yield
      nil
    rescue SystemCallError => e
      e.class.name
    end
  end
end
