# frozen_string_literal: true

# For `rails new`, which runs Bundler itself: gems that are there already need not be compiled in a newer version. See
# Bench::Bundle::ATTEMPTS.
ARGV.push("--prefer-local") if File.basename($PROGRAM_NAME).start_with?("bundle") && ARGV.first == "install"
