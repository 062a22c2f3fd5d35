# frozen_string_literal: true

require "pando/cluster/helper_process"
require "pando/cluster/protocol"
require "pando/config"
require "pando/server/cluster_options"
require "pando/server/launch"
require "pando/server/probed_release"
require "pando/server/kinds"
require "pando/server/release_directory"
require "pando/server/start_settings"

module Pando
  class Server
    # The configuration that is now in the release folder, beside the one in use. Made by Payload for a reload, in the
    # monitor, and either adopted or given up. A helper process runs the file first, because it may hang. The monitor
    # takes its settings from there, and runs the file itself only if it has blocks that run in the monitor.
    class Renewal
      # Seconds that the monitor may be blocked while it runs the file itself.
      LONGEST_IN_MONITOR = 5.0

      # @return [Config] once it is #ready?
      attr_reader :config

      # @param old [Config] in use
      # @param first [Config] that the monitor was started with, by the server's start or an upgrade
      # @param at_start [StartSettings] of the running reactor
      def initialize(server, old, first, at_start, poller)
        @server = server
        @old = old
        @first = first
        @at_start = at_start
        @release = ReleaseDirectory.new(old.directory)
        @reader = within { Cluster::HelperProcess.new(poller, Launch.probe(old), environment, old.boot_timeout) }
      end

      # Called at each turn of the monitor's loop until it is true.
      # @raise [ConfigError] the new one is wrong
      def ready?
        return true if @config
        return false unless @reader.proceed

        read
        true
      end

      # @return [Float, nil] when #ready? must be called again
      def due = (@reader.deadline unless @reader.ending)

      # In the new release's folder.
      def within(&block) = @release.within(&block)

      # @return [Cluster::ColdBootCommand] that starts the new release's mold
      def command = @command ||= Launch.mold(config, *(@folders if @folders.any?))

      def policy = policy_of(Kinds.names(config).first)

      def policy_of(name) = Kinds.policy(config, name)
      def listen = @server.listen(config)

      def control = ClusterOptions.of(config).control

      def admin = ClusterOptions.admin(config, *@folders)

      # @return [Array<String>] settings that differ from those at the server's start, and need a restart
      def kept
        pidfile = "pidfile" unless @first.pidfile == config.pidfile
        nodes = Kinds.names(config) - Kinds.names(@first) - config.pools.map(&:name)
        [*pidfile, *@at_start.changed_in(config), *nodes.map { |name| "node #{name} (or pando upgrade)" }]
      end

      # Uses it from now on. The folder may be gone: the next deployment is just writing it.
      def settle
        @release.enter
      rescue SystemCallError => e
        Events.emit("release.missing", reason: "the new release serves, but its folder cannot be entered: #{e.message}",
                                       advice: "run `pando reload` when the folder is there: until then, a cold boot " \
                                               "loads what is in the former one")
      end

      # The reload is cancelled or has failed.
      def give_up = @reader.abandon

      private

      def environment
        ENV.to_h.merge(ProbedRelease::ORDER => "#{Process.pid}:#{Cluster::PROTOCOL}")
      end

      def read
        @said = @reader.answer.lines.filter_map { |line| Cluster::Control::Line.decode(line) }
        @folders = all("folder").map { |said| said["path"] }
        check_protocol
        raise ConfigError, one("failed")["reason"].to_s if one("failed")
        raise ConfigError, untold unless one("done")

        @config = within { configuration }.tap { |config| check_kinds(config) }
      end

      # A reload cannot remove a pool that the server was started with, because its processes would have no owner.
      def check_kinds(config)
        old, new = [@first, config].map { |one| Kinds.names(one) }
        return if (old - new).empty? && old.first == new.first

        raise ConfigError, "the server runs #{old.join(", ")}, the new config has #{new.join(", ")}: a reload can " \
                           "remove none of them, nor change which comes first. Restart the server"
      end

      def configuration
        return Config.replay(@old.argv, @said) unless one("whole")

        seconds = one("done")["seconds"].to_f
        return Config.load(@old.argv) if seconds < LONGEST_IN_MONITOR

        raise ConfigError, "the configuration takes #{seconds} s to read: the monitor, which must read it as well, " \
                           "would be blocked (#{one("whole")["reason"]})"
      end

      def check_protocol
        pando = one("pando") or return
        return if pando["protocol"] == Cluster::PROTOCOL.to_s

        raise ConfigError, "the new release has Pando #{pando["version"]}, which does not understand this server's " \
                           "#{VERSION}: run pando upgrade first"
      end

      # Why the helper process has not finished.
      def untold
        how = @reader.late? ? "it was not read within #{@old.boot_timeout} s" : "its reader ended: #{@reader.ending}"
        ["the new release has no configuration that can be read: #{how}", *complaint].join(": ")
      end

      # Such as Bundler's of a missing gem, without colours and backtrace.
      def complaint
        lines = @reader.errors.gsub(/\e\[[\d;]*m/, "").lines.map(&:strip)
        text = lines.reject { |line| line.empty? || line.start_with?("from ") }.join(" ")
        text.empty? ? nil : text[0, 800]
      end

      def one(word) = all(word).last
      def all(word) = @said.filter_map { |said, pairs| pairs if said == word }
    end
  end
end
