# frozen_string_literal: true

require "rbconfig"
require "pando/cluster/control/line"
require "pando/cluster/protocol"
require "pando/version"

module Pando
  class Server
    # A new release as the process sees it that is sent to look at it, and tells the monitor line by line
    # (Renewal reads them). It may hang or die: it is not the monitor.
    #
    # @api private
    class ProbedRelease
      ORDER = "PANDO_PROBE" # the monitor's pid, what it speaks, and 1 once we have gone over to the release's own Pando
      ANSWER = 3
      HERE = File.expand_path("../..", __dir__)
      SCRIPT = "pando/server/probe.rb"

      # @param argv [Array<String>] the server's
      # @return never
      def self.tell(argv) = new(argv, *ENV.delete(ORDER).to_s.split(":").map(&:to_i)).tell

      def initialize(argv, monitor, protocol, other = 0)
        @argv = argv
        @monitor = monitor
        @protocol = protocol
        @other = other == 1
        @answer = IO.for_fd(ANSWER, "w")
        @answer.sync = true
      end

      def tell
        end_with_monitor
        folders = folders_of_bundle
        protocol = protocol_in(folders)
        go_over_to(folders) if protocol == @protocol && elsewhere?(folders) && !@other
        say("pando", version: version, protocol: protocol)
        folders.each { |folder| say("folder", path: folder) } if @other || elsewhere?(folders)
        configuration if protocol == @protocol
        exit!(0)
      end

      private

      def end_with_monitor
        require "pando/sys"
        Sys.die_with_parent!
        exit!(1) unless Sys.parent_pid == @monitor
      rescue LoadError
        nil # its deadline holds all the same
      end

      # Where the Pando is that the release has in its bundle; none: the monitor's own will do.
      def folders_of_bundle
        specification = defined?(Gem) && Gem.loaded_specs["pando"]
        specification ? specification.full_require_paths.select { |folder| File.directory?(folder) } : []
      end

      def version = (defined?(Gem) && Gem.loaded_specs["pando"]&.version) || VERSION

      # One from before there was a number speaks nothing that we know.
      def protocol_in(folders)
        return Cluster::PROTOCOL unless elsewhere?(folders)

        file = folders.map { |folder| File.join(folder, "pando/cluster/protocol.rb") }.find { |path| File.file?(path) }
        file ? File.read(file)[/^\s*PROTOCOL = (\d+)/, 1].to_i : 0
      end

      def elsewhere?(folders)
        folders.any? && folders.none? { |folder| File.identical?(folder, HERE) }
      end

      # Its configuration may have settings that only it knows.
      def go_over_to(folders)
        script = folders.map { |folder| File.join(folder, SCRIPT) }.find { |path| File.file?(path) } or return
        order = { ORDER => "#{@monitor}:#{@protocol}:1" }
        exec(order, RbConfig.ruby, *folders.flat_map { |folder| ["-I", folder] }, script, *@argv, ANSWER => ANSWER)
      end

      def configuration
        $stdout.reopen(File::NULL) # the mold will say it again
        require "pando/server/transcript"
        began = now
        config = Config.load(@argv).tap(&:require_rackup)
        Transcript.of(config).each { |line| @answer.write(line) }
        say("done", seconds: (now - began).round(3))
      rescue SystemExit => e # at a start it ends the server; one that serves already is not the file's to end
        say("failed", reason: "the configuration ends its process: #{e.message}, #{e.backtrace&.first}")
      rescue StandardError => e
        say("failed", reason: e.message)
      end

      def say(word, **pairs) = @answer.write(Cluster::Control::Line.encode(word, pairs))
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
