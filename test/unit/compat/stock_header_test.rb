# frozen_string_literal: true

require "test_helper"
require "pando/compat/translator"

# Which comments of Rails' config/puma.rb are left out.
class CompatStockHeaderTest < Minitest::Test
  EVALUATED = <<~RUBY
    # This configuration file will be evaluated by Puma. The top-level methods that
    # are invoked here are part of Puma's configuration DSL. For more information
    # about methods provided by the DSL, see https://puma.io/puma/Puma/DSL.html.
  RUBY
  THREADS = <<~RUBY
    # Puma can serve each request in a thread from an internal thread pool.
    # The `threads` method setting takes two numbers: a minimum and maximum.
    # Any libraries that use thread pools should be configured to match
    # the maximum value specified for Puma. Default is set to 5 threads for minimum
    # and maximum; this matches the default thread size of Active Record.
  RUBY
  CODE = "# Ours.\nworkers 2\n"

  # @return [String] what comes of it, below the header
  def translated(source)
    Pando::Compat::Translator.new(source, "config/puma.rb").call.text.split("\n\n", 2).last
  end

  def test_what_rails_says_of_puma_at_the_head_is_left_out
    assert_equal "workers 2\n", translated("#{EVALUATED}\n#{THREADS}workers 2\n")
    assert_equal CODE, translated("#{EVALUATED}\n#{THREADS}\n#{CODE}")
  end

  def test_what_somebody_has_added_stays
    changed = "#{EVALUATED}# Ask the platform team.\n\n#{CODE}"

    assert_equal changed, translated(changed)
    assert_equal "# Ours.\n\n#{EVALUATED}", translated("# Ours.\n\n#{EVALUATED}")
  end
end
