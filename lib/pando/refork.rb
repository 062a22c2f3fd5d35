# frozen_string_literal: true

require "pando/refork/auto"
require "pando/refork/policy"

module Pando
  # Decides when to refork and from which worker, and prepares memory for forks.
  #
  # @api private
  module Refork
    # @param setting [Symbol, Hash, false] the `refork` setting: `:auto`,
    #   `:manual`, `false`, or `{ after: [500, 750, false] }`
    # @param rules [Auto::Rules] of `:auto`
    # @raise [ArgumentError] for anything else
    def self.policy(setting, rules = Auto::Rules.for)
      case setting
      in :auto then Auto.new(rules)
      in :manual then Manual.new
      in false then Off.new
      in { after: Array => list } then Schedule.new(list)
      else raise ArgumentError, "not a refork setting: #{setting.inspect}"
      end
    end
  end
end
