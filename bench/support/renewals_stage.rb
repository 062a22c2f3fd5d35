# frozen_string_literal: true

require "fileutils"
require "pando/cli/control_client"
require "support/checkout"
require "support/pando_versions"
require "support/ports"
require "support/server_process"
require "tmpdir"

module Bench
  # A server that is renewed repeatedly: two releases of one application, two versions of Pando, and a link to one of
  # each. The application is that of a chaos run, whose answers a client can check.
  class RenewalsStage
    include Support::Ports

    Monitor = Struct.new(:descriptors, :pss)
    RELEASES = %w[one two].freeze
    VERSIONS = %w[1.0.1 1.0.2].freeze
    APP = Support::Checkout.path("test/chaos/support/chaos/stage")
    PATIENCE = 120 # seconds for one renewal
    SETTLED_WITHIN = 60

    # In direct mode a busy old worker accepts one more connection before it leaves, so the answer may be repeated this
    # often.
    LAST_REQUESTS = 20

    # @return [Integer] reloads after which the old release answered once more
    attr_reader :late
    attr_reader :port

    # @param direct [Boolean] without a reactor
    # @param config [String] further settings of the server
    def initialize(direct:, workers:, config:)
      @direct = direct
      @workers = workers
      @config = config
      @port = free_port
      @probes = @late = 0
      @root = File.realpath(Dir.mktmpdir("pando-renewals"))
      @versions = VERSIONS.reduce(Support::PandoVersions.new) { |versions, version| versions.add(version) }
      RELEASES.each { |name| lay_out(name) }
    end

    def start
      link(RELEASES.first)
      @versions.link(VERSIONS.first)
      @server = Support::ServerProcess.start(
        code: @versions.current, env: { "CHAOS_JOURNAL" => journal, "RUBYLIB" => APP },
        arguments: ["-C", File.join(@root, "current"), "--control", control, "-l", "127.0.0.1:#{port}"]
      )
    end

    # The application for the clients' checks.
    def direct? = @direct
    def pools? = false
    def socket = @server.socket_path

    # @return [String] path of the record of all requests that reached the application
    def journal = File.join(@root, "journal")

    # Switches to the other release.
    # @return [String, nil] why it failed
    def reload
      @release = link((RELEASES - [@release]).first)
      word, said = ask("reload")
      return said unless word == "ok"

      @late += 1 unless release?(@release)
      "it does not answer" unless (1..LAST_REQUESTS).any? { release?(@release) }
    end

    # Switches to the other version of Pando.
    # @return [String, nil] why it failed
    def upgrade
      @version = (VERSIONS - [@version || VERSIONS.first]).first
      @versions.link(@version)
      before = upgrades.size
      word, said = ask("upgrade")
      return said unless word == "ok"

      deadline = now + SETTLED_WITHIN # the server's last events may not have been read yet
      IO.select(nil, nil, nil, 0.01) until upgrades.size > before || now > deadline
      found = upgrades.last
      "the monitor runs #{found&.fetch("to")}" unless found&.fetch("to") == @version
    end

    # @return [Monitor]
    def monitor
      entry = @server.tree.monitor
      Monitor.new(entry.descriptors, entry.pss_kib)
    end

    # Waits until the exiting processes are gone.
    # @return [Hash{String => Integer}] processes other than the monitor, by role
    def cast(wanted = nil)
      deadline = now + SETTLED_WITHIN
      loop do
        found = @server.tree.children.map { |child| child.zombie? ? "zombie" : child.title[/\Apando (\w+)/, 1] }.tally
        return found if (wanted ? found == wanted : found["worker"] == @workers) || now > deadline

        IO.select(nil, nil, nil, 0.05)
      end
    end

    # @return [Array<Hash>] the server's events about processes that ended in another way than intended
    def lost
      names = %w[worker.lost worker.killed mold.lost mold.killed reactor.lost reactor.killed]
      names.flat_map { |name| @server.events(name) }
    end

    def output = @server&.output.to_s

    def clean_up
      @server&.kill
      @versions.remove
      FileUtils.rm_rf(@root)
    end

    private

    def upgrades = @server.events("monitor.upgraded")
    def control = File.join(@root, "control.sock")
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def lay_out(name)
      folder = File.join(@root, name)
      FileUtils.mkdir_p(folder)
      rackup = File.read(File.join(APP, "config.ru")).sub!('"x-pid" =>', "\"x-release\" => #{name.inspect}, \\0")
      File.write(File.join(folder, "config.ru"), rackup || raise("an application that does not tell its pid"))
      File.write(File.join(folder, "pando.rb"), <<~RUBY)
        log_format :json
        workers #{@workers}
        reactor #{!@direct}
        refork :manual
        body_memory 32 * 1024
        stream_bodies "/upload"
        #{@config}
      RUBY
    end

    def release?(name) = @server.get("/get/probe#{@probes += 1}").headers["x-release"] == name

    # Switches atomically, as deployments do.
    def link(name)
      File.symlink(name, File.join(@root, "next"))
      File.rename(File.join(@root, "next"), File.join(@root, "current"))
      @release = name
    end

    # @return [Array(String, String)] the outcome, and the reason or the text
    def ask(word)
      outcome, said = Pando::CLI::ControlClient.new(control).ask(word, timeout: PATIENCE) { |*| nil }
      [outcome, said["reason"] || said["text"]]
    rescue Pando::CLI::ControlClient::Silent => e
      ["failed", e.message]
    end
  end
end
