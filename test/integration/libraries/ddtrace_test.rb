# frozen_string_literal: true

require_relative "rows_app"

# ddtrace cannot be in one app with datadog, which has replaced it.
class DdtraceTest < Minitest::Test
  include RowsApp

  ROWS = %w[ddtrace].freeze

  def test_traces_are_sent_from_the_third_generation
    start(ROWS)
    third_generation_uses(ROWS).each { |use| @sink.wait_for("ddtrace-in-#{use["worker"]}-said") }

    refute_match(/datadog|ddtrace/, @server.wait_past("libraries.checked")["unknown"])
  end

  private

  def group = "ddtrace"

  def obstacle
    "ddtrace is not for Ruby #{RUBY_VERSION}" if Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.4")
  end

  def answers = { %r{\A/info} => '{"endpoints":["/v0.4/traces"],"version":"7.50.0"}' }
end
