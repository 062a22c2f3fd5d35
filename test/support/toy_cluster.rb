# frozen_string_literal: true

require "pando/cli/control_client"
require "support/server_process"

module Support
  # A cluster of several pools without HTTP, see test/fixtures/toy_cluster.rb; tests watch it like a ServerProcess.
  #
  #     toy = ToyCluster.start("alpha" => 2, "beta" => 1)
  #     toy.ask("refork", pool: "beta") # => ["ok", { "text" => ... }]
  class ToyCluster < ServerProcess
    SCRIPT = File.join(ROOT, "test/fixtures/toy_cluster.rb")

    # @return [ToyCluster] once each pool serves
    def self.start(pools)
      toy = new(pools)
      pools.each_key { |name| toy.wait_past("generation.current", pool: name) }
      toy
    rescue StandardError
      toy&.kill
      raise
    end

    # @param pools [Hash{String => Integer}] @param files [Hash{String => String}] that exist from the start
    def initialize(pools, files: {})
      @pools = pools
      @files = files
      super()
    end

    def pools=(pools)
      write("pools", pools.map { |name, count| "#{name} #{count}\n" }.join)
    end

    # @return [Array(String, Hash)] the final answer
    # @yieldparam word [String] @yieldparam pairs [Hash{String => String}]
    def ask(word, pairs = {}, &block)
      client = Pando::CLI::ControlClient.new(File.join(folder, "control.sock"))
      block ||= ->(*) {}
      client.ask(word, pairs, timeout: PATIENCE, &block)
    end

    # @return [Array<Hash>] processes of one role in one pool, as in `pando status`; without those that are exiting
    def children(role, pool)
      found = []
      ask("status") { |word, pairs| found << pairs if word == role && pairs["pool"] == pool }
      found.select { |child| %w[ready idle busy].include?(child["state"]) }
    end

    private

    def launch(...)
      self.pools = @pools
      @files.each { |name, text| write(name, text) }
      super
    end

    def command(_arguments) = [RbConfig.ruby, "-W0", "-I", File.join(ROOT, "lib"), SCRIPT]
  end
end
