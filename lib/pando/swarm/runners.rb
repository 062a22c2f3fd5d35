# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/required_files"

module Pando
  module Swarm
    # The adapters to job libraries that Pando brings along. Known by name everywhere, loaded in molds only.
    #
    # @api private
    module Runners
      # The class of a runner, the file that defines it, whether two nodes of one number must never live at once, and
      # whether its library comes with the Rails application that `require:` loads, instead of before it.
      Known = Struct.new(:class_name, :file, :exclusive, :in_rails)

      # @return [Hash{Symbol => Known}] a later runner adds a line here and a file in runners/
      ALL = {
        sidekiq: Known.new(:Sidekiq, "pando/swarm/runners/sidekiq", false),
        karafka: Known.new(:Karafka, "pando/swarm/runners/karafka", true),
        solid_queue: Known.new(:SolidQueue, "pando/swarm/runners/solid_queue", false, true),
        good_job: Known.new(:GoodJob, "pando/swarm/runners/good_job", false, true),
        bunny: Known.new(:Bunny, "pando/swarm/runners/bunny", false),
        resque: Known.new(:Resque, "pando/swarm/runners/resque", false)
      }.freeze

      # @param name [Symbol] one of ALL
      # @return [Class] loaded
      # @raise [BootError] the library is missing
      def self.load(name)
        known = ALL.fetch(name)
        require known.file
        const_get(known.class_name)
      end

      # For a runner that needs a gem: loads it, or says which one is missing.
      #
      # @param feature [String] what is required @param gem [String] what brings it
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
