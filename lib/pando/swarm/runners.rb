# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/required_files"

module Pando
  module Swarm
    # The runners that come with Pando: adapters to job libraries. Every process knows their names; only molds load
    # them.
    #
    # @api private
    module Runners
      # The class of a runner; the file that defines it; whether two nodes with the same number must never run at once;
      # and whether its library comes with the Rails app that `require:` loads, instead of being loaded before it.
      Known = Struct.new(:class_name, :file, :exclusive, :in_rails)

      # @return [Hash{Symbol => Known}] a new runner adds a line here and a file in runners/
      ALL = {
        sidekiq: Known.new(:Sidekiq, "pando/swarm/runners/sidekiq", false),
        karafka: Known.new(:Karafka, "pando/swarm/runners/karafka", true),
        solid_queue: Known.new(:SolidQueue, "pando/swarm/runners/solid_queue", false, true),
        good_job: Known.new(:GoodJob, "pando/swarm/runners/good_job", false, true),
        bunny: Known.new(:Bunny, "pando/swarm/runners/bunny", false),
        resque: Known.new(:Resque, "pando/swarm/runners/resque", false)
      }.freeze

      # @param name [Symbol] one of ALL
      # @return [Class] the runner's class, loaded
      # @raise [BootError] the library is missing
      def self.load(name)
        known = ALL.fetch(name)
        require known.file
        const_get(known.class_name)
      end

      # Loads the gem that a runner needs, or says that it is missing.
      #
      # @param feature [String] the file to require @param gem [String] the gem that has it
      # @raise [BootError]
      def self.require_gem(feature, gem)
        require feature
      rescue LoadError => e
        raise unless e.path == feature

        raise BootError, "node :#{gem.tr("-", "_")} needs the gem #{gem}: add it to the Gemfile (bundle add #{gem})"
      end
    end
  end
end
