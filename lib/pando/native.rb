# frozen_string_literal: true

# Loads the C extension. A checkout keeps one build per Ruby version beside
# each other; an installed gem has a single one.
begin
  require "pando/#{RUBY_VERSION[/\A\d+\.\d+/]}/pando_ext"
rescue LoadError
  require "pando/pando_ext"
end
