# frozen_string_literal: true

require "open3"
require "support/programs"

module Support
  # Prometheus' checker of metrics, rules and rule tests.
  module Promtool
    PROGRAM = Programs.find("promtool")

    def need_promtool
      skip "promtool is not installed (Debian's package prometheus)" unless PROGRAM
    end

    # @return [String] what it said
    def assert_promtool(*arguments, **options)
      said, status = Open3.capture2e(PROGRAM, *arguments, **options)
      assert_predicate(status, :success?, said)
      said
    end
  end
end
