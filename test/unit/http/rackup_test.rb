# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/http/rackup"

class HTTPRackupTest < Minitest::Test
  def load(text)
    Dir.mktmpdir do |dir|
      File.write("#{dir}/config.ru", text)
      Pando::HTTP::Rackup.load("#{dir}/config.ru")
    end
  end

  def test_it_returns_the_application
    app = load("# a comment\nrun ->(env) { [200, {}, [env['x']]] }\n__END__\nrun nil\n")

    assert_equal [200, {}, ["y"]], app.call("x" => "y")
  end

  def test_a_missing_file_is_named
    error = assert_raises(Pando::BootError) { Pando::HTTP::Rackup.load("/nonexistent/config.ru") }

    assert_includes error.message, "/nonexistent/config.ru"
  end

  def test_what_the_file_raises_comes_through_with_its_line
    error = assert_raises(ZeroDivisionError) { load("\n1 / 0\n") }

    assert_match(/config\.ru:2/, error.backtrace.first)
  end

  def test_a_file_without_an_application
    assert_raises(Pando::BootError) { load("# nothing\nrun 5\n") }
  end

  def test_without_the_rack_gem_the_error_names_it
    script = <<~RUBY
      require "pando/http/rackup"
      begin
        Pando::HTTP::Rackup.load(__FILE__)
      rescue Pando::BootError => e
        puts e.message
      end
    RUBY
    Dir.mktmpdir do |dir|
      File.write("#{dir}/script.rb", script)
      command = [RbConfig.ruby, "--disable-gems", "-I", Support::Checkout.path("lib"), "#{dir}/script.rb"]
      out = Support::Checkout.without_bundle { IO.popen(command, &:read) }

      assert_includes out, "gem \"rack\""
    end
  end
end
