# frozen_string_literal: true

require "rbconfig"
require "pando/cluster/control/line"
require "pando/cluster/protocol"
require "pando/version"

module Pando
  class Server
    # Reads the configuration of a new release and reports it line by line to the monitor (Renewal). It runs in a helper
    # process, because the configuration may hang or end its process.
    class ProbedRelease
      ORDER = "PANDO_PROBE" # the monitor's pid, its protocol, and 1 in the release's own Pando
      ANSWER = 3
      HERE = File.expand_path("../..", __dir__)
      SCRIPT = "pando/server/probe.rb"

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

      # The folders of the Pando in the release's bundle; none: the monitor's own Pando serves.
      def folders_of_bundle
        specification = defined?(Gem) && Gem.loaded_specs["pando"]
        specification ? specification.full_require_paths.select { |folder| File.directory?(folder) } : []
      end

      def version = (defined?(Gem) && Gem.loaded_specs["pando"]&.version) || VERSION

      # 0: a Pando from before there was a number, which this one does not understand.
      def protocol_in(folders)
        return Cluster::PROTOCOL unless elsewhere?(folders)

        file = folders.map { |folder| File.join(folder, "pando/cluster/protocol.rb") }.find { |path| File.file?(path) }
        file ? File.read(file)[/^\s*PROTOCOL = (\d+)/, 1].to_i : 0
      end

      def elsewhere?(folders)
        folders.any? && folders.none? { |folder| File.identical?(folder, HERE) }
      end

      # Executes the release's own Pando: the configuration may have settings that only it knows.
      def go_over_to(folders)
        script = folders.map { |folder| File.join(folder, SCRIPT) }.find { |path| File.file?(path) } or return
        order = { ORDER => "#{@monitor}:#{@protocol}:1" }
        exec(order, RbConfig.ruby, *folders.flat_map { |folder| ["-I", folder] }, script, *@argv, ANSWER => ANSWER)
      end

      def configuration
        $stdout.reopen(File::NULL) # the mold will print it again
        require "pando/config"
        began = now
        config = Config.load(@argv).tap(&:require_rackup)
        Transcript.of(config).each { |line| @answer.write(line) }
        say("done", seconds: (now - began).round(3))
      rescue SystemExit => e # at a start that ends the server, but it must not end one that serves already
        say("failed", reason: "the configuration ends its process: #{e.message}, #{e.backtrace&.first}")
      rescue StandardError => e
        say("failed", reason: e.message)
      end

      def say(word, **pairs) = @answer.write(Cluster::Control::Line.encode(word, pairs))
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # A configuration as lines of text, for the monitor, which must not run the file: each setting as a flag would give
    # it, and the names of services. Config.replay reads them. What would not be the same there has no line: instead of
    # it, one says that the monitor must run the file itself.
    class Transcript
      def self.of(config) = new(config).lines

      def initialize(config)
        @config = config
      end

      def lines
        settings = @config.in_file.flat_map { |name, entries| entries.map { |entry| set(Config::Settings[name], entry) } }
        pools = @config.pool_lines.map { |pool| line("pool", "pool #{pool.name}", **pool.to_h) }
        nodes = @config.node_lines.map { |node| line("node", "node #{node.name}", **node.to_h) }
        settings + services + pools + nodes + blocks_of_monitor
      end

      private

      def set(setting, entry)
        text = setting.type.text(entry.value)
        return whole("#{setting.title} has a value that only Ruby can write") unless same?(setting, text, entry.value)

        line("set", setting.title, name: setting.name, source: entry.source, value: text,
                                   **options(setting, entry.value))
      end

      # Such as a name in another encoding than UTF-8.
      def same?(setting, text, value)
        setting.cast(Cluster::Control::Line.plain(text.b)) == value
      rescue Config::Type::Invalid
        false
      end

      def options(setting, value)
        return {} unless setting.options.any? && value.respond_to?(:options)

        value.options.to_h { |name, option| [:"option_#{name}", setting.options.fetch(name).type.text(option)] }
      end

      def services
        @config.blocks.select { |block| block.kind == :service }
               .map { |block| line("service", block.title, name: block.name, source: block.source) }
      end

      def blocks_of_monitor
        block = @config.blocks.find { |one| one.kind == :event || Hooks::OF_MONITOR.include?(one.name) }
        block ? [whole("#{block.source}: #{block.title} runs in the monitor")] : []
      end

      # @param title [String] of what the line says
      def line(word, title, **pairs)
        line = encode(word, **pairs)
        said = pairs.to_h { |key, value| [key.name, value.to_s] }
        Cluster::Control::Line.decode(line) == [word, said] ? line : whole("#{title} is long")
      end

      # The monitor must run the file itself.
      def whole(reason) = encode("whole", reason: reason)

      def encode(word, **pairs) = Cluster::Control::Line.encode(word, pairs)
    end
  end
end
