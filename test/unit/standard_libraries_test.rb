# frozen_string_literal: true

require "test_helper"

# What Ruby brings along becomes a gem of its own with time. Pando has no dependency, so it requires none of those; its
# tests have those in the Gemfile that they require.
class StandardLibrariesTest < Minitest::Test
  # No default gems any more since Ruby 3.0 to 4.0, or from 4.1 on; fetched by Ruby's own warning (bundled_gems.rb).
  GEMS = %w[abbrev base64 benchmark bigdecimal cgi csv dbm drb fiddle gdbm getoptlong irb kconv logger matrix mutex_m
            net/ftp net/imap net/pop net/smtp net/telnet nkf observer ostruct prime pstore racc rdoc readline reline
            resolv-replace rexml rinda rss sdbm set/sorted_set sorted_set syslog tracer tsort webrick win32ole
            xmlrpc].freeze
  REQUIRED = /^[^#\n]*\b(?:require|autoload)[ (](?::\w+, *)?["']([^"'#]+)["']/

  def test_the_library_requires_none
    assert_operator required("{lib,exe,ext}/**/*").size, :>, 50
    assert_empty required("{lib,exe,ext}/**/*") & GEMS
  end

  def test_those_of_the_tests_are_in_the_gemfile
    gemfile = File.read(Support::Checkout.path("Gemfile"))

    assert_empty((required("{test,bench,bin,fuzz}/**/*") & GEMS).reject { |name| gemfile.include?("gem \"#{name}\"") })
  end

  # Ruby's own list, where it has one: ours is whole.
  def test_the_list_is_whole
    skip "Ruby #{RUBY_VERSION} has no list" unless defined?(Gem::BUNDLED_GEMS::SINCE)
    assert_empty(Gem::BUNDLED_GEMS::SINCE.keys.reject { |name| GEMS.intersect?([name, name.tr("-", "/")]) })
  end

  private

  # Of a checkout's Ruby files; what only fixtures require is in bundles of their own.
  def required(pattern)
    files = Dir[Support::Checkout.path(pattern)].grep_v(%r{/fixtures/}).select { |path| ruby?(path) }
    files.flat_map { |path| File.read(path).scan(REQUIRED) }.flatten.uniq
  end

  def ruby?(path) = path.end_with?(".rb") || (File.file?(path) && File.binread(path, 60).to_s.match?(/\A#!.*ruby/))
end
